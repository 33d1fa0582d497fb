//! What the text of a module shows of its errors: that they have types, that no variant of
//! theirs is only a text, and that nothing is decided by the text of a code.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// Every `Result<…, String>` of a text outside code for tests, by line; an associated type
/// `Err` or `Error` that is a `String`, too.
pub fn untyped(source: &str) -> Vec<usize> {
    found(source, &|trees, at| {
        let name = match &trees[at] {
            TokenTree::Ident(ident) => ident.to_string(),
            _ => return false,
        };
        match name.as_str() {
            "Result" | "Ok" | "Err" => {
                let is_turbofish = is_joint(trees.get(at + 1), ':');
                let from = at + 1 + if is_turbofish { 2 } else { 0 };
                let arguments = arguments(&trees[from.min(trees.len())..]);
                arguments.len() == 2 && is_string(arguments[1])
            }
            "type" => {
                let is_error = |tree: &TokenTree| matches!(tree, TokenTree::Ident(ident) if ident == "Err" || ident == "Error");
                let end = trees[at..].iter().position(|tree| is_punct(tree, ';'));
                let item = &trees[at..at + end.unwrap_or(0)];
                item.len() > 3
                    && is_error(&item[1])
                    && is_punct(&item[2], '=')
                    && is_string(&item[3..])
            }
            _ => false,
        }
    })
}

/// Every variant of an error in a text that holds one `String` and shows nothing else.
pub fn free_texts(source: &str) -> Vec<usize> {
    found(source, &|trees, at| {
        // `#[error("{0}")]`, and what it belongs to.
        let (Some(shown), rest) = (shown(trees, at), trees.get(at + 2..).unwrap_or_default())
        else {
            return false;
        };
        let fields = rest.iter().find_map(|tree| match tree {
            TokenTree::Group(group) if group.delimiter() != Delimiter::Bracket => {
                Some(Some((group.delimiter(), group.stream())))
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' || punct.as_char() == ';' => {
                Some(None)
            }
            _ => None,
        });
        let Some(Some((delimiter, fields))) = fields else {
            return false;
        };
        let fields = without_attributes(fields);
        let fields = match fields.as_slice() {
            [fields @ .., last] if is_punct(last, ',') => fields,
            fields => fields,
        };
        match (delimiter, fields) {
            (Delimiter::Parenthesis, fields) => shown == "{0}" && is_string(fields),
            (_, [TokenTree::Ident(name), colon, rest @ ..]) => {
                shown == format!("{{{name}}}") && is_punct(colon, ':') && is_string(rest)
            }
            _ => false,
        }
    })
}

/// Every place of a text outside code for tests where `.code` is compared with a string.
pub fn compared(source: &str) -> Vec<usize> {
    found(source, &|trees, at| match &trees[at] {
        TokenTree::Ident(ident) if ident == "code" => is_code(trees, at) && is_decided(trees, at),
        // `["a", "b"].contains(&failure.code)`
        TokenTree::Ident(ident) if ident == "contains" => {
            let list = at.checked_sub(2).map(|at| &trees[at]);
            let list = list.is_some_and(|list| has_string(list, Delimiter::Bracket));
            list && trees.get(at + 1).is_some_and(holds_code)
        }
        // `matches!(failure.code, "a" | "b")`
        TokenTree::Ident(ident) if ident == "matches" => trees
            .get(at + 2)
            .is_some_and(|tree| has_string(tree, Delimiter::Parenthesis) && holds_code(tree)),
        _ => false,
    })
}

/// `.code`, and not a call.
fn is_code(trees: &[TokenTree], at: usize) -> bool {
    let is_field = at > 0 && is_punct(&trees[at - 1], '.');
    let is_call = matches!(
        trees.get(at + 1),
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
    );
    is_field && !is_call && matches!(&trees[at], TokenTree::Ident(ident) if ident == "code")
}

fn is_decided(trees: &[TokenTree], at: usize) -> bool {
    // What is asked of it: `.as_str()`, `.starts_with("a")`.
    let mut end = at + 1;
    while let [
        TokenTree::Punct(punct),
        TokenTree::Ident(_),
        group @ TokenTree::Group(_),
        ..,
    ] = &trees[end..]
        && punct.as_char() == '.'
    {
        if has_string(group, Delimiter::Parenthesis) {
            return true;
        }
        end += 3;
    }
    let after = match &trees[end..] {
        [one, other, value, ..] if is_comparison(one, other) => is_text(value),
        [group @ TokenTree::Group(_), ..] => has_string(group, Delimiter::Brace),
        _ => false,
    };
    // What stands before `failure.code`.
    let is_path = |tree: &&TokenTree| match tree {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => ".&*".contains(punct.as_char()),
        _ => false,
    };
    let length = trees[..at].iter().rev().take_while(is_path).count();
    let before = match &trees[..at - length] {
        [.., value, one, other] if is_comparison(one, other) => is_text(value),
        _ => false,
    };
    after || before
}

fn holds_code(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else {
        return false;
    };
    let trees: Vec<TokenTree> = group.stream().into_iter().collect();
    (0..trees.len()).any(|at| is_code(&trees, at))
}

fn is_comparison(one: &TokenTree, other: &TokenTree) -> bool {
    (is_punct(one, '=') || is_punct(one, '!')) && is_punct(other, '=')
}

/// A group of this kind with a string in it.
fn has_string(tree: &TokenTree, delimiter: Delimiter) -> bool {
    match tree {
        TokenTree::Group(group) if group.delimiter() == delimiter => {
            let trees: Vec<TokenTree> = group.stream().into_iter().collect();
            // In braces only a pattern counts.
            let is_arm = |at: usize| {
                trees
                    .get(at + 1)
                    .is_some_and(|next| is_punct(next, '|') || is_punct(next, '='))
            };
            let counts = |at: usize| delimiter != Delimiter::Brace || is_arm(at);
            (0..trees.len()).any(|at| is_text(&trees[at]) && counts(at))
        }
        _ => false,
    }
}

fn is_text(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Literal(literal) if literal.to_string().contains('"'))
}

/// What an attribute `error` shows, if it is one and has no more than that.
fn shown(trees: &[TokenTree], at: usize) -> Option<String> {
    let TokenTree::Group(group) = trees.get(at + 1)? else {
        return None;
    };
    let within: Vec<TokenTree> = group.stream().into_iter().collect();
    match within.as_slice() {
        [TokenTree::Ident(name), TokenTree::Group(said)]
            if is_punct(&trees[at], '#') && name == "error" =>
        {
            let said: Vec<TokenTree> = said.stream().into_iter().collect();
            match said.as_slice() {
                [TokenTree::Literal(text)] => Some(text.to_string().trim_matches('"').to_owned()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn without_attributes(stream: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut trees = stream.into_iter();
    while let Some(tree) = trees.next() {
        match is_punct(&tree, '#') {
            true => drop(trees.next()),
            false => kept.push(tree),
        }
    }
    kept
}

/// What stands between `<` and its `>`, by argument; nothing if it does not begin so.
fn arguments(trees: &[TokenTree]) -> Vec<&[TokenTree]> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 1);
    for (at, tree) in trees.iter().enumerate() {
        let is_arrow = at > 0 && is_joint(trees.get(at - 1), '-');
        match tree {
            tree if is_punct(tree, '<') => depth += 1,
            tree if is_punct(tree, '>') && !is_arrow => depth -= 1,
            tree if is_punct(tree, ',') && depth == 1 => {
                found.push(&trees[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if depth == 0 {
            if at > start {
                found.push(&trees[start..at]);
            }
            return found;
        }
    }
    Vec::new()
}

/// `String`, however it is written.
fn is_string(trees: &[TokenTree]) -> bool {
    let text: String = trees.iter().map(ToString::to_string).collect();
    text == "String" || text.ends_with("string::String")
}

fn is_punct(tree: &TokenTree, wanted: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// The first of two characters that belong together.
fn is_joint(tree: Option<&TokenTree>, wanted: char) -> bool {
    matches!(
        tree,
        Some(TokenTree::Punct(punct))
            if punct.as_char() == wanted && punct.spacing() == Spacing::Joint
    )
}

/// The lines of a text outside code for tests at which this holds.
fn found(source: &str, holds: &dyn Fn(&[TokenTree], usize) -> bool) -> Vec<usize> {
    let mut lines = Vec::new();
    match source.parse() {
        Ok(tokens) => walk(tokens, holds, &mut lines),
        // The other tests say where.
        Err(_) => lines.push(0),
    }
    lines
}

fn walk(tokens: TokenStream, holds: &dyn Fn(&[TokenTree], usize) -> bool, lines: &mut Vec<usize>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut is_tests = false;
    for (at, tree) in trees.iter().enumerate() {
        if is_punct(tree, '#')
            && let Some(TokenTree::Group(attribute)) = trees.get(at + 1)
        {
            let written = attribute.stream().to_string().replace(' ', "");
            is_tests |= written == "cfg(test)" || written == "test";
        }
        if !is_tests && holds(&trees, at) {
            lines.push(tree.span().start().line);
        }
        match tree {
            TokenTree::Group(group) => {
                if !is_tests {
                    walk(group.stream(), holds, lines);
                }
                is_tests &= group.delimiter() != Delimiter::Brace;
            }
            tree if is_punct(tree, ';') => is_tests = false,
            _ => {}
        }
    }
}
