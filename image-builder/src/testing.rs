//! What tests need: an image's files below a directory.

use std::fs;
use std::path::Path;

use crate::archive::Image;

/// Writes a layout into a directory, which is made if it is not there.
pub(crate) fn write_layout(image: &Image, dir: &Path) {
    for (path, data) in image.files() {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, data).unwrap();
    }
}
