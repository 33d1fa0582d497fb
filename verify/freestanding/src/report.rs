//! Parts → what the verifier says of them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use tki_verify::artifacts::Source;
use tki_verify::inputs::Clock;
use tki_verify::signers::AllowedSigners;
use tki_verify::{Bundle, Inputs, verify};

/// One line per step and one for the decision, or the reason why there is none.
pub fn report(input: &[u8]) -> String {
    let Some((bundle, inputs)) = parts(input) else {
        return "the input is cut off\n".into();
    };
    let found = match verify(&bundle, &inputs) {
        Ok(found) => found,
        Err(error) => return format!("{}: {error}\n", error.code()),
    };
    let mut text = String::new();
    for step in &found.steps {
        text += &format!("{} {:?}: {}\n", step.code, step.outcome, step.got);
    }
    text + &format!("{:?} {}\n", found.decision, found.assurance.name())
}

fn parts(mut input: &[u8]) -> Option<(Bundle, Inputs)> {
    let mut bundle = Bundle {
        name: "evidence.json".into(),
        evidence: Vec::new(),
        envelope: None,
        artifacts: Source::Memory(Default::default()),
    };
    let mut inputs = Inputs::default();
    while !input.is_empty() {
        let name = core::str::from_utf8(part(&mut input)?).ok()?;
        let bytes = part(&mut input)?.to_vec();
        match name {
            "evidence" => bundle.evidence = bytes,
            "envelope" => bundle.envelope = Some(bytes),
            "signers" => {
                let list = AllowedSigners::parse(&bytes).ok()?;
                inputs.allowed_signers = Some((list, String::new()));
            }
            "now" => {
                let now = core::str::from_utf8(&bytes).ok()?.parse().ok()?;
                inputs.clock = Clock { now, given: false };
            }
            path => {
                if let Source::Memory(files) = &mut bundle.artifacts {
                    files.insert(path.to_string(), bytes);
                }
            }
        }
    }
    Some((bundle, inputs))
}

fn part<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = input.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some(part)
}
