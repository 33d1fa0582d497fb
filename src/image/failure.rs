//! What the image stage's errors are to a person: exit code, message, next action.

use crate::failure::Failure;
use crate::image::ImageError;
use crate::image::store::StoreError;

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        Failure::usage(error.code(), error.what(), error.next())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::usage(error.code(), error.to_string(), error.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::image::Recipe;

    #[test]
    fn a_failure_keeps_code_place_and_advice() {
        let error = Recipe::parse("Docker\u{1b}file", b"FROM scratch\nRUN x\n").unwrap_err();
        let shown = error.to_string();
        let failure = Failure::from(error);
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.code, "dockerfile.unsupported");
        let place = "Docker\\u{1b}file:2:1: RUN: ";
        assert!(failure.message.starts_with(place), "{}", failure.message);
        assert_eq!(shown, format!("{}; {}", failure.message, failure.next));
    }

    #[test]
    fn write_errors_name_the_path_and_exit_2() {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let failure = Failure::from(StoreError::write("/x/y".as_ref(), source));
        assert_eq!((failure.exit, failure.code), (Exit::Usage, "image.write"));
        assert!(failure.message.contains("/x/y"), "{}", failure.message);
    }
}
