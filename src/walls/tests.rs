//! The walls stand, and would not let through what they are there for.

use super::check::{Breach, breaches, stale};
use super::cuts::{CUTS, Cut};
use super::rules::{APART, WALLS, Wall};
use super::text::{Kind, Text};
use super::tree::{Sources, Tree};
use std::fs;
use std::path::Path;

pub(super) fn read(folder: &Path, below: &str, sources: &mut Sources) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{below}{name}");
        if entry.file_type().unwrap().is_dir() {
            read(&entry.path(), &format!("{path}/"), sources);
        } else if name.ends_with(".rs") {
            sources.insert(path, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// The sources of this crate.
fn sources() -> Sources {
    let mut sources = Sources::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&root, "", &mut sources);
    sources
}

fn shown(breaches: &[Breach]) -> String {
    let lines: Vec<String> = breaches.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn every_path_goes_in_a_direction_that_the_table_allows() {
    let tree = Tree::of(&sources()).unwrap();
    let found = breaches(&tree, &tree.edges(), WALLS);
    assert!(found.is_empty(), "\n{}\n", shown(&found));
}

#[test]
fn the_table_says_nothing_that_is_not_so() {
    let tree = Tree::of(&sources()).unwrap();
    let found = stale(&tree, WALLS);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_table_has_one_direction() {
    for (at, wall) in WALLS.iter().enumerate() {
        for (to, why) in wall.may {
            let top = to.split("::").next().unwrap();
            let below = WALLS[..at].iter().any(|below| below.module == top);
            assert!(below, "{} imports {to}, which is not below it", wall.module);
            assert!(!why.is_empty(), "{} imports {to}", wall.module);
        }
    }
}

/// Where ARCHITECTURE.md prints the table.
const MARKS: [&str; 2] = [
    "<!-- the table of imports, written by `make schema` -->\n",
    "<!-- end -->\n",
];

/// The table as ARCHITECTURE.md has it.
fn printed() -> String {
    let mut text = String::from("\n| module | may import |\n|---|---|\n");
    for wall in WALLS {
        let may = wall.may.iter().map(|(to, why)| format!("`{to}` ({why})"));
        let may: Vec<String> = may.collect();
        let may = match may.is_empty() {
            true => "nothing".to_owned(),
            false => may.join(", "),
        };
        text += &format!("| `{}` | {may} |\n", wall.module);
    }
    text += "\nBeside that, in the same folder:\n\n";
    for (from, to, why) in APART {
        text += &format!("- `{from}` imports nothing of `{to}`: {why}.\n");
    }
    text + "\n"
}

#[test]
fn the_table_is_the_one_that_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).unwrap();
    let (found, after) = rest.split_once(MARKS[1]).unwrap();
    if std::env::var_os("TKI_WRITE_SCHEMAS").is_some() {
        let [begin, end] = MARKS;
        fs::write(&path, format!("{before}{begin}{}{end}{after}", printed())).unwrap();
    } else {
        assert_eq!(found, printed(), "`make schema` writes it again");
    }
}

/// The ways in which an import can be put back at the end of a file.
fn ways_back(path: &str, depth: usize) -> [String; 5] {
    let rest = path.strip_prefix("crate::").unwrap();
    let relative = format!("{}{rest}", "super::".repeat(depth));
    let (above, last) = path.rsplit_once("::").unwrap();
    [
        format!("use {path};"),
        format!("pub use {above}::{{\n    {last} as put_back,\n}};"),
        format!("fn put_back() {{ let _ = {path}; }}"),
        format!("use {relative};"),
        format!("const _: () = assert!(matches!({relative}, _));"),
    ]
}

#[test]
fn whatever_was_cut_is_seen_if_it_is_put_back() {
    let sources = sources();
    let tree = Tree::of(&sources).unwrap();
    let edges = tree.edges();
    let mut unseen = Vec::new();
    for Cut { file, path } in CUTS {
        let known = tree.modules().find(|(_, source)| source.file == *file);
        let (module, _) = known.unwrap_or_else(|| panic!("src/{file}: there is no such file"));
        let text = sources[*file].trim_end();
        // Each on lines of its own, after the last one of the file.
        let ways = ways_back(path, module.len());
        let with = format!("{text}\n{}\n", ways.join("\n"));
        let with = tree.edges_with(&edges, file, &with).unwrap();
        let found = breaches(&tree, &with, WALLS);
        let mut line = text.lines().count() + 1;
        for back in ways {
            let lines = line..line + back.lines().count();
            line = lines.end;
            let is_named = found.iter().any(|breach| {
                breach.file == *file
                    && lines.contains(&breach.line)
                    && path.ends_with(breach.written.trim_start_matches("super::"))
            });
            if !is_named {
                unseen.push(format!("src/{file}: {back}\n{}", shown(&found)));
            }
        }
    }
    assert!(unseen.is_empty(), "\n{}\n", unseen.join("\n"));
}

#[test]
fn a_file_that_no_module_declares_is_named() {
    let mut sources = sources();
    sources.insert("engine/forgotten.rs".into(), String::new());
    let error = Tree::of(&sources).unwrap_err();
    assert_eq!(error, "src/engine/forgotten.rs: no module declares it");
}

#[test]
fn every_form_of_a_path_is_found() {
    let text = Text::parse(
        r##"
//! crate::in_a::comment
/// [`crate::in_a::doc`]
use crate::{one::A, two::{self, B as C, deep::*}, three};
pub(crate) use super::four::{
    D,
    self,
};
use ::std::fs;
#[serde(with = "crate::five")]
struct S(crate::six::E, <crate::seven::F as G>::H);
fn f() -> impl Sized + use<> { call!("{}", crate::eight::I::<u8>::new()); x.y::<self::nine::J>() }
mod inner {
    use super::super::ten;
    #[cfg(test)]
    mod tests { fn g() { super::eleven::k() } }
}
#[cfg(test)]
use crate::twelve;
#[path = "other_tests.rs"]
mod thirteen;
const TEXT: &str = "crate::in_a::text";
macro_rules! m { () => { $crate::fourteen::L } }
pub type Alias = super::r#type::Fifteen;
"##,
    )
    .unwrap();
    let found: Vec<String> = text
        .paths
        .iter()
        .map(|found| {
            let kind = match &found.kind {
                Kind::Inline => "",
                Kind::Import { exports: true, .. } => "export ",
                Kind::Import { binds: None, .. } => "all of ",
                Kind::Import { .. } => "import ",
            };
            let test = if found.in_test { " in a test" } else { "" };
            format!("{} {kind}{}{test}", found.line, found.names.join("::"))
        })
        .collect();
    assert_eq!(
        found,
        [
            "4 import crate::one::A",
            "4 import crate::two",
            "4 import crate::two::B",
            "4 all of crate::two::deep",
            "4 import crate::three",
            "6 export super::four::D",
            "7 export super::four",
            "10 crate::five",
            "11 crate::six::E",
            "11 crate::seven::F",
            "12 crate::eight::I",
            "12 self::nine::J",
            "14 import super::super::ten",
            "16 super::eleven::k in a test",
            "19 import crate::twelve in a test",
            "23 crate::fourteen::L",
            "24 super::type::Fifteen",
        ]
    );
    assert_eq!(text.modules.len(), 1);
    assert_eq!(text.modules[0].path.as_deref(), Some("other_tests.rs"));
}

/// A crate with two stages and a folder.
fn small(low: &str, child: &str) -> Tree {
    let files = [
        ("lib.rs", "pub mod high; pub mod low;"),
        ("main.rs", ""),
        ("high.rs", "pub struct Top;"),
        (
            "low/mod.rs",
            "mod child; mod other; pub use child::Thing; use crate::high::Top;",
        ),
        ("low/child.rs", child),
        ("low/other.rs", low),
    ];
    let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    Tree::of(&Sources::from(files)).unwrap()
}

#[test]
fn a_path_through_a_re_export_leads_to_the_real_module() {
    const SMALL: &[Wall] = &[Wall {
        module: "low",
        may: &[],
    }];
    let said = |tree: &Tree| shown(&breaches(tree, &tree.edges(), SMALL));
    let through = small("fn f(_: super::Top) {}", "pub struct Thing;");
    let found = said(&through);
    assert!(
        found.contains("src/low/other.rs:1: super::Top: low may not import high"),
        "{found}"
    );
    // Through the folder's own re-export two submodules import each other.
    let circle = small(
        "fn f(_: super::Thing) {}",
        "use super::other;\npub struct Thing;",
    );
    let found = said(&circle);
    let [one, two] = [
        "src/low/child.rs:1: super::other: a circle in low: child → other → child",
        "src/low/other.rs:1: super::Thing: a circle in low: other → child → other",
    ];
    assert!(found.contains(one) && found.contains(two), "{found}");
    // A test may look at both.
    let tested = small(
        "",
        "use super::other;\npub struct Thing;\n#[cfg(test)]\nmod tests { use super::super::Thing; }",
    );
    assert!(!said(&tested).contains("circle"), "{}", said(&tested));
}
