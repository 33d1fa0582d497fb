//! JSON Schemas of the packet and of the report, generated from the types. The files are
//! checked in below `inspector/schema/`; a test fails when they drift, and `make schema` writes
//! them again.

use crate::packet::Packet;
use crate::report::Report;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use schemars::schema_for;

/// The published schema files: name and contents.
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        ("inspection.v1.schema.json", render(&schema_for!(Report))),
        ("packet.v1.schema.json", render(&schema_for!(Packet))),
    ]
}

fn render(schema: &schemars::Schema) -> String {
    let mut text =
        serde_json::to_string_pretty(schema).expect("a schema is plain JSON without map keys");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn checked_in_schemas_are_those_of_the_types() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema");
        for (name, wanted) in super::files() {
            let path = folder.join(name);
            if std::env::var_os("TKI_WRITE_SCHEMAS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &wanted).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == wanted, "{name} drifted: run `make schema`");
        }
    }
}
