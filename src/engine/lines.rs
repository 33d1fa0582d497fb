//! A container's output, cut into lines. Lines and the whole are bounded.

use crate::engine::EngineError;
use std::collections::VecDeque;
use tki_evidence::wire::MAX_LINE;

/// Lines that have arrived, and the beginning of the next one.
#[derive(Debug)]
pub struct Lines {
    /// The most bytes of all of them.
    most: usize,
    whole: VecDeque<Vec<u8>>,
    partial: Vec<u8>,
    received: usize,
}

impl Lines {
    /// Those of a container that may write so many bytes.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            whole: VecDeque::new(),
            partial: Vec::new(),
            received: 0,
        }
    }

    /// Takes in a piece of output.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        self.received += bytes.len();
        if self.received > self.most {
            return Err(EngineError::TooMuch {
                what: format!("more than {} bytes", self.most),
            });
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if self.partial.len() > MAX_LINE {
                return Err(EngineError::TooMuch {
                    what: format!("a line of more than {MAX_LINE} bytes"),
                });
            }
            if self.partial.last() == Some(&b'\n') {
                self.partial.pop();
                self.whole.push_back(std::mem::take(&mut self.partial));
            }
        }
        Ok(())
    }

    /// The next line, without its newline.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.whole.pop_front()
    }

    /// What is left at the end: a last line without its newline is a line all
    /// the same.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.partial)).filter(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tki_evidence::wire::MAX_TRANSCRIPT;

    #[test]
    fn pieces_become_lines() {
        let mut lines = Lines::new(MAX_TRANSCRIPT);
        lines.take(b"one\ntw").unwrap();
        lines.take(b"o\n\nrest").unwrap();
        for wanted in ["one", "two", ""] {
            assert_eq!(lines.pop().unwrap(), wanted.as_bytes());
        }
        assert_eq!(lines.pop(), None);
        assert_eq!(lines.rest().unwrap(), b"rest");
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn a_flood_is_refused() {
        let mut lines = Lines::new(MAX_TRANSCRIPT);
        assert!(lines.take(&vec![b'x'; MAX_LINE + 1]).is_err());
        let mut lines = Lines::new(MAX_TRANSCRIPT);
        assert!(lines.take(&vec![b'\n'; MAX_TRANSCRIPT + 1]).is_err());
    }
}
