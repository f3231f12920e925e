//! The slots: what a caller asks for, and what a variant must promise to serve it.

use crate::arch;
use crate::error::{Error, Word};
use crate::variant::{Operation, StoresOnce, Variant};
use core::fmt;

/// What a caller asks for. Each slot is served by one variant and switched by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Slot {
    /// Whole pages cleared, to be used soon.
    ClearPage,
    /// Whole pages copied, to be used soon.
    CopyPage,
    /// Any range cleared or filled, to be used soon.
    Clear,
    /// Any range copied, to be used soon.
    Copy,
    /// Whole pages cleared, not to be used soon.
    ClearPageNontemporal,
    /// Whole pages copied, not to be used soon.
    CopyPageNontemporal,
    /// Any range cleared or filled, not to be used soon.
    ClearNontemporal,
    /// Any range copied, not to be used soon.
    CopyNontemporal,
}

impl Slot {
    /// All slots, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::ClearPage,
        Self::CopyPage,
        Self::Clear,
        Self::Copy,
        Self::ClearPageNontemporal,
        Self::CopyPageNontemporal,
        Self::ClearNontemporal,
        Self::CopyNontemporal,
    ];

    /// The name, as `CACHEWISE_FORCE` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClearPage => "clear_page",
            Self::CopyPage => "copy_page",
            Self::Clear => "clear",
            Self::Copy => "copy",
            Self::ClearPageNontemporal => "clear_page_nontemporal",
            Self::CopyPageNontemporal => "copy_page_nontemporal",
            Self::ClearNontemporal => "clear_nontemporal",
            Self::CopyNontemporal => "copy_nontemporal",
        }
    }

    /// What a variant must do to serve this slot.
    pub const fn operation(self) -> Operation {
        match self {
            Self::ClearPage | Self::Clear | Self::ClearPageNontemporal | Self::ClearNontemporal => {
                Operation::Clear
            }
            Self::CopyPage | Self::Copy | Self::CopyPageNontemporal | Self::CopyNontemporal => {
                Operation::Copy
            }
        }
    }

    /// Whether the caller has said that the result is not used soon.
    pub const fn is_nontemporal(self) -> bool {
        self as u8 >= Self::ClearPageNontemporal as u8
    }

    /// Whether whole, page-aligned pages are meant.
    pub const fn is_page(self) -> bool {
        matches!(
            self,
            Self::ClearPage
                | Self::CopyPage
                | Self::ClearPageNontemporal
                | Self::CopyPageNontemporal
        )
    }

    /// The slot with this name.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownSlot`], whose message lists the slots.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|slot| slot.name() == name)
            .ok_or_else(|| Error::UnknownSlot { name: Word::new(name) })
    }

    /// Whether this variant may serve the slot: it does the slot's operation, and it writes each
    /// byte once where the slot promises that (all `_nontemporal` and page slots; case 8).
    pub fn accepts(self, variant: &Variant) -> bool {
        variant.operation() == self.operation() && self.keeps_promise(variant)
    }

    pub(crate) fn keeps_promise(self, variant: &Variant) -> bool {
        match variant.stores_once() {
            StoresOnce::Always => true,
            StoresOnce::Pages => self.is_page() || !self.is_nontemporal(),
            // Where nothing else exists, plain Rust must serve.
            StoresOnce::No => !(self.is_page() || self.is_nontemporal()) || !arch::HAS_ASSEMBLY,
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
