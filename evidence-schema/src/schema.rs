//! JSON Schemas, generated from the types. The files are checked in; a test
//! fails when they drift, and `make schema` writes them again.

use crate::{evidence::Evidence, matrix::Matrix};

/// The published schema files: name and contents.
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        (
            "evidence.v1.schema.json",
            render(schemars::schema_for!(Evidence)),
        ),
        (
            "matrix.v1.schema.json",
            render(schemars::schema_for!(Matrix)),
        ),
    ]
}

fn render(schema: schemars::Schema) -> String {
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a schema is plain JSON without map keys");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn checked_in_schemas_are_those_of_the_types() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for (name, wanted) in super::files() {
            let path = folder.join(name);
            if std::env::var_os("TKI_WRITE_SCHEMAS").is_some() {
                std::fs::write(&path, &wanted).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(found == wanted, "{name} drifted: run `make schema`");
        }
    }
}
