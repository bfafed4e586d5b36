//! One file a page.

pub(crate) mod chaos;
pub(crate) mod connect;
pub(crate) mod exchange;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod profiles;
pub(crate) mod recordings;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod stop;
pub(crate) mod timeline;
pub(crate) mod trend;
