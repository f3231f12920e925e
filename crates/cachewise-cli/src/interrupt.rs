//! Ctrl-C: the first one ends the measurement and keeps the finished cases, a second one ends the
//! process. Both with 130.

use crate::failure::INTERRUPTED;
use cachewise_measure::Stop;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io;
use std::sync::Arc;

pub(crate) fn on_ctrl_c() -> io::Result<Arc<Stop>> {
    let stop = Arc::new(Stop::new(false));
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED.into(), Arc::clone(&stop))?;
    flag::register(SIGINT, Arc::clone(&stop))?;
    Ok(stop)
}
