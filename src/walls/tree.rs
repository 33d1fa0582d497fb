//! The modules of the crate, and which of them a path leads to.

use super::text::{Kind, Text};
use std::collections::{BTreeMap, HashMap};

/// How many re-exports a path may go through.
const MOST_STEPS: u32 = 12;

/// The files below `src`, by path, with `/` between names.
pub type Sources = BTreeMap<String, String>;

/// A module by its names, without `crate`.
pub type Module = Vec<String>;

/// The modules of the crate.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    modules: BTreeMap<Module, Source>,
    /// What a name in a module means: a path if it is imported, else something of the
    /// module's own.
    names: HashMap<Module, HashMap<String, Option<Module>>>,
    /// What modules import everything from.
    globs: HashMap<Module, Vec<Module>>,
}

/// The text of a module.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file, below `src`.
    pub file: String,
    /// What is in it.
    pub text: Text,
    /// It is there for tests alone.
    pub in_test: bool,
}

/// A path from one module to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The module that it is in.
    pub from: Module,
    /// The module that it leads to.
    pub to: Module,
    /// The file, below `src`.
    pub file: String,
    /// The line.
    pub line: usize,
    /// As it is written.
    pub written: String,
    /// It is a re-export.
    pub exports: bool,
    /// It is in code for tests.
    pub in_test: bool,
}

impl Tree {
    /// Follows the declarations from `lib.rs`; `main.rs` is a module of its own. Every file
    /// must be reached.
    pub fn of(sources: &Sources) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.add(sources, Vec::new(), "lib.rs", false)?;
        tree.add(sources, vec!["main".into()], "main.rs", false)?;
        let known: Vec<&String> = tree.modules.values().map(|source| &source.file).collect();
        match sources.keys().find(|file| !known.contains(file)) {
            None => {}
            Some(file) => return Err(format!("src/{file}: no module declares it")),
        }
        tree.name_all();
        Ok(tree)
    }

    /// The modules, and their texts.
    pub fn modules(&self) -> impl Iterator<Item = (&Module, &Source)> {
        self.modules.iter()
    }

    fn add(
        &mut self,
        sources: &Sources,
        module: Module,
        file: &str,
        in_test: bool,
    ) -> Result<(), String> {
        let source = sources.get(file);
        let source = source.ok_or_else(|| format!("src/{file}: declared, but not there"))?;
        let text = Text::parse(source).map_err(|error| format!("src/{file}: {error}"))?;
        let declared = text.modules.clone();
        let in_test = in_test || file.ends_with("_tests.rs");
        let place = Source {
            file: file.to_owned(),
            text,
            in_test,
        };
        self.modules.insert(module.clone(), place);
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let stem = name.strip_suffix(".rs").unwrap_or(name);
        let at = |rest: String| match folder {
            "" => rest,
            folder => format!("{folder}/{rest}"),
        };
        let within = |rest: &str| match stem {
            "lib" | "main" | "mod" => at(rest.to_owned()),
            stem => at(format!("{stem}/{rest}")),
        };
        for child in declared {
            let name = &child.name;
            let one = within(&format!("{name}.rs"));
            let file = match &child.path {
                Some(path) => at(path.clone()),
                None if sources.contains_key(&one) => one,
                None => within(&format!("{name}/mod.rs")),
            };
            let mut below = module.clone();
            below.push(child.name.clone());
            self.add(sources, below, &file, in_test || child.in_test)?;
        }
        Ok(())
    }

    fn name_all(&mut self) {
        let mut names: HashMap<Module, HashMap<String, Option<Module>>> = HashMap::new();
        let mut globs: HashMap<Module, Vec<Module>> = HashMap::new();
        let scope_of = |module: &Module, scope: &[String]| [module, scope].concat();
        for (module, source) in &self.modules {
            for (scope, name) in &source.text.names {
                let known = names.entry(scope_of(module, scope)).or_default();
                known.entry(name.clone()).or_insert(None);
            }
            for found in &source.text.paths {
                let Kind::Import { binds, .. } = &found.kind else {
                    continue;
                };
                let scope = scope_of(module, &found.scope);
                let leads = self.absolute(&scope, &found.names, 0);
                match (binds, leads) {
                    (Some(name), leads) => {
                        names.entry(scope).or_default().insert(name.clone(), leads);
                    }
                    (None, Some(leads)) => globs.entry(scope).or_default().push(leads),
                    (None, None) => {}
                }
            }
        }
        self.names = names;
        self.globs = globs;
    }

    /// A path from the root of the crate; none if it leads to another crate or is no path of
    /// modules.
    fn absolute(&self, scope: &[String], names: &[String], steps: u32) -> Option<Module> {
        let (first, rest) = names.split_first()?;
        match first.as_str() {
            "crate" | "tki_attest" => Some(rest.to_vec()),
            "self" => Some([scope, rest].concat()),
            "super" => {
                let above = scope.split_last()?.1;
                match rest.first() {
                    Some(next) if next == "super" => self.absolute(above, rest, steps),
                    _ => Some([above, rest].concat()),
                }
            }
            _ => {
                let child = [scope, std::slice::from_ref(first)].concat();
                if self.modules.contains_key(&child) {
                    return Some([&child, rest].concat());
                }
                // An imported module.
                let imported = self.names.get(scope)?.get(first)?.as_ref()?;
                let (module, left) = self.follow(imported, steps + 1);
                (left == 0).then(|| [&module, rest].concat())
            }
        }
    }

    /// The module that a path from the root leads to, through re-exports, and how many of its
    /// last names are not modules.
    fn follow(&self, path: &[String], steps: u32) -> (Module, usize) {
        let mut known = 0;
        while known < path.len() && self.modules.contains_key(&path[..=known]) {
            known += 1;
        }
        let (module, rest) = path.split_at(known);
        let Some((name, beyond)) = rest.split_first() else {
            return (module.to_vec(), 0);
        };
        if steps < MOST_STEPS {
            if let Some(imported) = self.names.get(module).and_then(|names| names.get(name)) {
                return match imported {
                    Some(leads) if leads != path => {
                        self.follow(&[leads, beyond].concat(), steps + 1)
                    }
                    _ => (module.to_vec(), rest.len()),
                };
            }
            for all in self.globs.get(module).into_iter().flatten() {
                let (all, _) = self.follow(all, steps + 1);
                let has = self
                    .names
                    .get(&all)
                    .is_some_and(|names| names.contains_key(name))
                    || self
                        .modules
                        .contains_key(&[&all, std::slice::from_ref(name)].concat());
                if has && all != module {
                    return self.follow(&[&all, rest].concat(), steps + 1);
                }
            }
        }
        (module.to_vec(), rest.len())
    }

    /// Every path from one module to another.
    pub fn edges(&self) -> Vec<Edge> {
        let modules = self.modules.iter();
        modules
            .flat_map(|(module, source)| self.edges_of(module, source))
            .collect()
    }

    /// The same if the file had another text: `edges` with the paths of that text in place of
    /// the file's own.
    pub fn edges_with(&self, edges: &[Edge], file: &str, text: &str) -> Result<Vec<Edge>, String> {
        let known = self.modules.iter().find(|(_, source)| source.file == file);
        let (module, source) = known.ok_or_else(|| format!("src/{file}: there is no such file"))?;
        let source = Source {
            text: Text::parse(text)?,
            ..source.clone()
        };
        let others = edges.iter().filter(|edge| edge.file != file).cloned();
        Ok(others.chain(self.edges_of(module, &source)).collect())
    }

    fn edges_of(&self, module: &Module, source: &Source) -> Vec<Edge> {
        let mut edges = Vec::new();
        for found in &source.text.paths {
            let scope = [module, &found.scope[..]].concat();
            let Some(path) = self.absolute(&scope, &found.names, 0) else {
                continue;
            };
            let (to, _) = self.follow(&path, 0);
            if to == *module {
                continue;
            }
            edges.push(Edge {
                from: module.clone(),
                to,
                file: source.file.clone(),
                line: found.line,
                written: found.names.join("::"),
                exports: matches!(found.kind, Kind::Import { exports: true, .. }),
                in_test: source.in_test || found.in_test,
            });
        }
        edges
    }
}
