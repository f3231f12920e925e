//! Ctrl-C, and being told to end: the first time ends the measurement and keeps the finished cases, a
//! second time ends the process. Both with 130.
//!
//! A hang-up that is ignored when we come stays so: that is how nohup(1) works.

use crate::failure::INTERRUPTED;
use cachewise_measure::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::c_int;
use std::fs;
use std::io;
use std::sync::Arc;

pub(crate) fn on_ctrl_c() -> io::Result<Arc<Stop>> {
    let stop = Arc::new(Stop::new(false));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup = Some(SIGHUP).filter(|&signal| !is_ignored(&status, signal));
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// By the mask in proc_pid_status(5); where there is none, it isn't.
fn is_ignored(status: &str, signal: c_int) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_counts_signals_from_one() {
        let status = "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        for (signal, is) in [(SIGHUP, true), (SIGINT, false), (13, true), (SIGTERM, false)] {
            assert_eq!(is_ignored(status, signal), is, "{signal}");
        }
        assert!(!is_ignored("", SIGHUP));
    }
}
