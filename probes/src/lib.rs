//! The offline inspector.
