//! The paths in the text of a module.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// What is found in the text of a module.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Every path of at least two names, and every import.
    pub paths: Vec<Found>,
    /// The modules that are declared and lie in a file of their own.
    pub modules: Vec<Declared>,
    /// What is defined: the modules of the same text that it is in, and its name.
    pub names: Vec<(Vec<String>, String)>,
}

/// A path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The line that it begins in.
    pub line: usize,
    /// Its names, as written; what a `*` stands for is not among them.
    pub names: Vec<String>,
    /// The modules of the same text that it is in.
    pub scope: Vec<String>,
    /// How it is written.
    pub kind: Kind,
    /// It is in code for tests.
    pub in_test: bool,
}

/// How a path is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In code, in a macro or in an attribute.
    Inline,
    /// In a `use`, which binds a name (or all of them: none) and may export it.
    Import {
        /// The name; none for a `*`.
        binds: Option<String>,
        /// Others may use it.
        exports: bool,
    },
}

/// A module in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What its `path` attribute says.
    pub path: Option<String>,
    /// It is there for tests alone.
    pub in_test: bool,
}

impl Text {
    /// Reads a text. An error names what cannot be read.
    pub fn parse(source: &str) -> Result<Self, String> {
        let tokens: TokenStream = source.parse().map_err(|error| format!("{error}"))?;
        let mut text = Self::default();
        let place = Place::default();
        text.walk(tokens, &place);
        Ok(text)
    }

    fn walk(&mut self, tokens: TokenStream, place: &Place) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut place = place.clone();
        // What the attributes of the item to come say of it.
        let mut item = Attributes::default();
        let mut at = 0;
        while at < trees.len() {
            match &trees[at] {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let is_inner = is_punct(trees.get(at + 1), '!');
                    let group = at + 1 + usize::from(is_inner);
                    if let Some(TokenTree::Group(group)) = trees.get(group)
                        && group.delimiter() == Delimiter::Bracket
                    {
                        let said = self.attribute(group.stream(), &place);
                        match is_inner {
                            true => place.in_test |= said.in_test,
                            false => item.add(said),
                        }
                    }
                    at = group;
                }
                TokenTree::Ident(ident) if ident == "mod" => {
                    at = self.module(&trees, at, &place, &mut item);
                }
                TokenTree::Ident(ident) if ident == "use" && !is_punct(trees.get(at + 1), '<') => {
                    let end = trees[at..]
                        .iter()
                        .position(|tree| is_punct(Some(tree), ';'));
                    let end = at + end.unwrap_or(trees.len() - at);
                    let import = Import {
                        exports: is_public(&trees[..at]),
                        in_test: place.in_test || item.in_test,
                        scope: &place.scope,
                    };
                    self.import(&trees[at + 1..end], &[], &import);
                    item = Attributes::default();
                    at = end;
                }
                TokenTree::Ident(_) => at = self.path(&trees, at, &place, item.in_test),
                TokenTree::Group(group) => {
                    let within = Place {
                        in_test: place.in_test || item.in_test,
                        ..place.clone()
                    };
                    self.walk(group.stream(), &within);
                    if group.delimiter() == Delimiter::Brace {
                        item = Attributes::default();
                    }
                }
                TokenTree::Literal(literal) if place.in_attribute => {
                    // As in `#[serde(with = "crate::…")]`.
                    let text = literal.to_string();
                    let names: Vec<String> = text.trim_matches('"').split("::").map(name).collect();
                    if ["crate", "self", "super"].contains(&names[0].as_str()) {
                        self.found(literal.span(), names, &place, place.in_test, Kind::Inline);
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => item = Attributes::default(),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Reads an attribute, and tells what it says of its item.
    fn attribute(&mut self, tokens: TokenStream, place: &Place) -> Attributes {
        let written = tokens.to_string().replace(' ', "");
        if written.starts_with("doc=") {
            return Attributes::default();
        }
        let within = Place {
            in_attribute: true,
            ..place.clone()
        };
        self.walk(tokens, &within);
        let path = written.strip_prefix("path=");
        Attributes {
            in_test: written == "cfg(test)",
            path: path.map(|path| path.trim_matches('"').to_owned()),
        }
    }

    /// Reads a module from its keyword on; gives where it ends.
    fn module(
        &mut self,
        trees: &[TokenTree],
        at: usize,
        place: &Place,
        item: &mut Attributes,
    ) -> usize {
        let Some(TokenTree::Ident(ident)) = trees.get(at + 1) else {
            return at;
        };
        let said = std::mem::take(item);
        let module = name(ident.to_string());
        if let Some(TokenTree::Group(group)) = trees.get(at + 2) {
            let mut within = place.clone();
            within.scope.push(module);
            within.in_test |= said.in_test;
            self.walk(group.stream(), &within);
        } else {
            self.modules.push(Declared {
                name: module,
                path: said.path,
                in_test: place.in_test || said.in_test,
            });
        }
        at + 2
    }

    /// Reads a path in code; gives its last token.
    fn path(&mut self, trees: &[TokenTree], at: usize, place: &Place, in_test: bool) -> usize {
        const DEFINE: [&str; 9] = [
            "struct",
            "enum",
            "fn",
            "trait",
            "type",
            "const",
            "static",
            "union",
            "macro_rules",
        ];
        let mut names = Vec::new();
        let mut end = at;
        while let Some(TokenTree::Ident(ident)) = trees.get(end) {
            names.push(name(ident.to_string()));
            if !is_separator(trees, end + 1) {
                break;
            }
            end += 3;
        }
        // After a separator comes something else, such as `<`.
        let last = if matches!(trees.get(end), Some(TokenTree::Ident(_))) {
            end
        } else {
            end - 1
        };
        if DEFINE.contains(&names[0].as_str()) {
            let defined = trees[at + 1..].iter().find_map(|tree| match tree {
                TokenTree::Ident(ident) => Some(name(ident.to_string())),
                _ => None,
            });
            let defined = defined.map(|defined| (place.scope.clone(), defined));
            self.names.extend(defined);
        }
        // What follows a separator belongs to the path before it, as in `<A as B>::c::d`.
        let is_rest = at >= 2 && is_separator(trees, at - 2);
        if names.len() > 1 && !is_rest {
            let in_test = place.in_test || in_test;
            self.found(trees[at].span(), names, place, in_test, Kind::Inline);
        }
        last
    }

    /// Reads what stands between `use` and its end, below a prefix.
    fn import(&mut self, trees: &[TokenTree], prefix: &[String], import: &Import) {
        let Some(first) = trees.first() else {
            return;
        };
        if let TokenTree::Punct(punct) = first
            && punct.as_char() == ':'
        {
            // `use ::name` names another crate.
            return;
        }
        let mut names = prefix.to_vec();
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            match tree {
                TokenTree::Ident(ident) if ident == "as" => break,
                TokenTree::Ident(ident) => names.push(name(ident.to_string())),
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    self.imported(first, names, None, import);
                    return;
                }
                TokenTree::Group(group) => {
                    let within: Vec<TokenTree> = group.stream().into_iter().collect();
                    for one in within.split(|tree| is_punct(Some(tree), ',')) {
                        self.import(one, &names, import);
                    }
                    return;
                }
                _ => {}
            }
            at += 1;
        }
        let alias = match trees.get(at + 1) {
            Some(TokenTree::Ident(alias)) => Some(name(alias.to_string())),
            _ => None,
        };
        // `{self}` is what stands before it.
        if names.len() > 1 && names.last().is_some_and(|last| last == "self") {
            names.pop();
        }
        let binds = alias.or_else(|| names.last().cloned());
        self.imported(first, names, binds, import);
    }

    fn imported(
        &mut self,
        first: &TokenTree,
        names: Vec<String>,
        binds: Option<String>,
        import: &Import,
    ) {
        self.paths.push(Found {
            line: first.span().start().line,
            names,
            scope: import.scope.to_vec(),
            kind: Kind::Import {
                binds,
                exports: import.exports,
            },
            in_test: import.in_test,
        });
    }

    fn found(
        &mut self,
        span: proc_macro2::Span,
        names: Vec<String>,
        place: &Place,
        in_test: bool,
        kind: Kind,
    ) {
        self.paths.push(Found {
            line: span.start().line,
            names,
            scope: place.scope.clone(),
            kind,
            in_test,
        });
    }
}

/// Where in a text something stands.
#[derive(Clone, Debug, Default)]
struct Place {
    scope: Vec<String>,
    in_test: bool,
    in_attribute: bool,
}

/// What attributes say of an item.
#[derive(Debug, Default)]
struct Attributes {
    in_test: bool,
    path: Option<String>,
}

impl Attributes {
    fn add(&mut self, other: Self) {
        self.in_test |= other.in_test;
        self.path = self.path.take().or(other.path);
    }
}

/// A `use`.
struct Import<'a> {
    exports: bool,
    in_test: bool,
    scope: &'a [String],
}

fn is_punct(tree: Option<&TokenTree>, wanted: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// `::` begins here.
fn is_separator(trees: &[TokenTree], at: usize) -> bool {
    let is_joint = matches!(
        trees.get(at),
        Some(TokenTree::Punct(punct)) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint
    );
    is_joint && is_punct(trees.get(at + 1), ':')
}

/// What stands before a `use` makes it an export: `pub`, or `pub` and for whom.
fn is_public(before: &[TokenTree]) -> bool {
    let is_pub =
        |tree: Option<&TokenTree>| matches!(tree, Some(TokenTree::Ident(ident)) if ident == "pub");
    match before {
        [.., TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            is_pub(before.len().checked_sub(2).and_then(|at| before.get(at)))
        }
        _ => is_pub(before.last()),
    }
}

fn name(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    text.strip_prefix("r#").unwrap_or(text).to_owned()
}
