//! The programs inside, as they are compiled: what they depend on, what code is in them, which
//! system calls they make.

/// How the build script compiles them.
#[path = "../../build/freestanding.rs"]
pub mod compile;

use super::{names_in, need, root, run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cargo that runs this test.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// A program depends on these packages and on no other.
pub fn depends_only_on(program: &str, listed: &[&str]) {
    let mut tree = Command::new(cargo());
    tree.current_dir(root()).args([
        "tree",
        "--locked",
        "--offline",
        "--features",
        "freestanding",
    ]);
    tree.args([
        "-p", program, "-e", "normal", "--prefix", "none", "--format", "{p}",
    ]);
    let said = need("cargo", &mut tree);
    said.succeeded();
    let lines = said.stdout.lines().filter(|line| !line.contains("(*)"));
    let found: BTreeSet<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(found, listed.iter().copied().collect());
}

/// A program as the build script compiles it, with its symbols.
pub fn unstripped(program: &str, workspace: &Path, target_dir: &Path) -> PathBuf {
    let (mut command, binary) = compile::compile(program, &cargo(), workspace, target_dir);
    command.args(["--config", "profile.inside.strip=\"none\""]);
    run(command.env("CARGO_NET_OFFLINE", "true")).succeeded();
    binary
}

/// Symbols that are no Rust paths.
const PLAIN_SYMBOLS: &[&str] = &[
    "_Unwind_Resume",
    "__bss_start",
    "_edata",
    "_end",
    "_start",
    "bcmp",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "rust_eh_personality",
    "strlen",
];

/// Every symbol of a program belongs to one of these crates.
pub fn holds_only(binary: &Path, crates: &[&str]) {
    let said = need("binutils", Command::new("nm").arg("-C").arg(binary));
    said.succeeded();
    let mut symbols = 0;
    for line in said.stdout.lines() {
        // Address, kind, name; an undefined symbol has no address.
        let (kind, name) = line
            .get(17..)
            .and_then(|rest| rest.split_once(' '))
            .unwrap();
        assert_ne!(kind, "U", "{line}");
        symbols += 1;
        let roots = crates_in(name);
        let listed = match roots.is_empty() {
            true => {
                PLAIN_SYMBOLS.contains(&name)
                    || name.starts_with("GCC_except_table")
                    || name.starts_with(['<', '.'])
            }
            false => roots.iter().all(|root| crates.contains(root)),
        };
        assert!(listed, "{line}");
    }
    assert!(symbols > 100, "{symbols}");
}

/// The first parts of all paths in a demangled name.
fn crates_in(name: &str) -> Vec<&str> {
    let mut roots = Vec::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (at, _) in name.match_indices("::") {
        let start = name[..at]
            .rfind(|c| !is_word(c))
            .map_or(0, |found| found + 1);
        let word = &name[start..at];
        if !word.is_empty() && !name[..start].ends_with("::") {
            roots.push(word);
        }
    }
    roots
}

/// How many places of a program reach its one `syscall` instruction with which number, read
/// from the program itself; or what cannot be read.
pub fn system_calls(binary: &Path) -> Result<BTreeMap<u32, usize>, String> {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "--no-show-raw-insn", "-M", "intel", "-C"]);
    let said = need("binutils", objdump.arg(binary));
    said.succeeded();
    let (mut calls, mut instructions) = (BTreeMap::new(), 0);
    let mut function: Vec<&str> = Vec::new();
    for line in said.stdout.lines() {
        if line.ends_with(">:") {
            function.clear();
            continue;
        }
        let Some((_, instruction)) = line.split_once(":\t") else {
            continue;
        };
        let instruction = instruction.trim();
        let mnemonic = instruction.split(' ').next().unwrap_or_default();
        if ["syscall", "sysenter", "int"].contains(&mnemonic) {
            instructions += 1;
        }
        if instruction.contains("<tki_inside::sys::raw>") {
            // The first argument is where the result goes.
            let number =
                value_of("rsi", &function).ok_or_else(|| format!("{line}: which call?"))?;
            *calls.entry(number).or_insert(0) += 1;
        }
        function.push(instruction);
    }
    match instructions {
        1 => Ok(calls),
        count => Err(format!("{count} instructions enter the kernel")),
    }
}

/// What a register holds after these instructions, if it is a constant.
fn value_of(register: &str, before: &[&str]) -> Option<u32> {
    let narrow = match register {
        "rsi" => "esi".to_owned(),
        "rbx" => "ebx".to_owned(),
        "rbp" => "ebp".to_owned(),
        numbered => format!("{numbered}d"),
    };
    for (at, instruction) in before.iter().enumerate().rev() {
        let (mnemonic, operands) = instruction.split_once(' ')?;
        let operands = operands.trim();
        if mnemonic == "pop" && operands == register {
            let pushed = before.get(at.checked_sub(1)?)?.strip_prefix("push")?;
            return constant(pushed.trim());
        }
        let Some((to, from)) = operands.split_once(',') else {
            continue;
        };
        if to != register && to != narrow {
            continue;
        }
        return match mnemonic {
            "xor" if from == narrow => Some(0),
            "mov" if from.starts_with(['0', '1', '2', '3']) => constant(from),
            "mov" => value_of(from, &before[..at]),
            _ => None,
        };
    }
    None
}

fn constant(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The sources as they are in a checkout, somewhere else.
pub fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names_in(from) {
        let (source, copy) = (from.join(&name), to.join(&name));
        let kind = fs::symlink_metadata(&source).unwrap().file_type();
        if ["target", "dist", "reports", ".git"].contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            copy_sources(&source, &copy);
        } else if kind.is_file() {
            fs::copy(&source, &copy).unwrap();
        }
    }
}
