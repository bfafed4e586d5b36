//! One file a page.

pub(crate) mod chaos;
pub(crate) mod exchange;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod stop;
