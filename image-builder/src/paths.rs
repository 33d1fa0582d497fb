//! Paths inside a context or an image: relative, clean, and never a way out.

/// Why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathProblem {
    /// It has a `..` component.
    Parent,
    /// It has a control character.
    Control,
    /// It has a component that a layer would read as a deletion.
    Whiteout,
}

impl PathProblem {
    /// The problem's stable code.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Parent => "context.escape",
            Self::Control | Self::Whiteout => "context.name",
        }
    }

    /// The problem in words that follow the path.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Parent => "has a `..` component, which could leave its root",
            Self::Control => "has a control character in its name",
            Self::Whiteout => "has a name starting with `.wh.`, which marks a deletion in a layer",
        }
    }
}

/// The path without `.` and empty components and without slashes at its ends;
/// the root is the empty string. `..` is refused even where it would stay
/// inside, because what it means depends on symbolic links.
pub(crate) fn clean(path: &str) -> Result<String, PathProblem> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(PathProblem::Parent),
            name => {
                check_name(name)?;
                parts.push(name);
            }
        }
    }
    Ok(parts.join("/"))
}

/// Whether one component may be the name of a file in an image.
pub(crate) fn check_name(name: &str) -> Result<(), PathProblem> {
    if name.chars().any(char::is_control) {
        return Err(PathProblem::Control);
    }
    if name.starts_with(".wh.") {
        return Err(PathProblem::Whiteout);
    }
    Ok(())
}

/// Two clean paths joined; either may be the root.
pub(crate) fn join(parent: &str, child: &str) -> String {
    match (parent, child) {
        ("", path) | (path, "") => path.to_owned(),
        _ => format!("{parent}/{child}"),
    }
}

/// The parents of a clean path, outermost first, without the root.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// The last component of a clean path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{PathProblem, ancestors, clean, file_name, join};

    #[test]
    fn paths_are_cleaned_and_never_leave() {
        assert_eq!(clean("./a//b/."), Ok("a/b".into()));
        assert_eq!(clean("/"), Ok(String::new()));
        assert_eq!(clean("a/../b"), Err(PathProblem::Parent));
        assert_eq!(clean("a/b\u{7}"), Err(PathProblem::Control));
        assert_eq!(clean("a/.wh.b"), Err(PathProblem::Whiteout));
        assert_eq!(clean("..a/b.."), Ok("..a/b..".into()));
    }

    #[test]
    fn parts_of_paths() {
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(ancestors("a").count(), 0);
        assert_eq!(file_name("a/b"), "b");
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("a", ""), "a");
        assert_eq!(join("a", "b"), "a/b");
    }
}
