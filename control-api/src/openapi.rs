//! The API's own description: OpenAPI 3.1, made from the [table of routes](crate::router).
//!
//! Each route carries an [`Operation`], written beside its handler. Path, method and role come from the
//! table, schemas from the types that are read and written, so none of them is said twice. Nothing of
//! it is built before somebody asks.

mod document;
mod links;
mod operation;
mod parameters;
mod profile;

pub(crate) use self::document::document;
pub(crate) use self::operation::{JSON, Operation, YAML};
pub(crate) use self::parameters::{
    ExchangeIdText, Moment, NameOrNumber, RowNumber, ScopeName, Sha256Text, StatusText,
    TextOrNumber,
};
pub(crate) use self::profile::{ChaosRules, ProfileDocument};
