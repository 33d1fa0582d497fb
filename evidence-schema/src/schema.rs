//! JSON Schemas, generated from the types. The files are checked in; a test
//! fails when they drift, and `make schema` writes them again.

use crate::binding::Binding;
use crate::evidence::Evidence;
use crate::matrix::Matrix;
use crate::policy::Policy;
use crate::request::Request;
use crate::statement::{Statement, TestResult};
use crate::verification::Verification;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use schemars::schema_for;

/// The published schema files: name and contents.
pub fn files() -> Vec<(&'static str, String)> {
    vec![
        ("binding.v1.schema.json", render(schema_for!(Binding))),
        ("evidence.v1.schema.json", render(schema_for!(Evidence))),
        ("matrix.v1.schema.json", render(schema_for!(Matrix))),
        ("policy.v1.schema.json", render(schema_for!(Policy))),
        ("request.v1.schema.json", render(schema_for!(Request))),
        (
            "statement.v1.schema.json",
            render(schema_for!(Statement<TestResult>)),
        ),
        (
            "verification.v1.schema.json",
            render(
                schemars::generate::SchemaSettings::draft2020_12()
                    .for_serialize()
                    .into_generator()
                    .into_root_schema_for::<Verification>(),
            ),
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
