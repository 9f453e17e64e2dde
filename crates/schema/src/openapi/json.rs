//! Writes JSON without building a tree; objects and lists are closures.

/// The size from which the output is passed on.
const PIECE_BYTES: usize = 64 * 1024;

/// JSON text that is being written.
pub(crate) struct Json {
    out: Vec<u8>,
    /// Whether the next member or item follows another one.
    follows: bool,
}

impl Json {
    /// Returns the text of an object.
    pub(crate) fn document(write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut json = Self { out: Vec::new(), follows: false };
        json.object(write);
        json.out
    }

    /// Passes the output so far to `sink` if it is large.
    pub(crate) fn drain(&mut self, sink: &mut dyn FnMut(&[u8])) {
        if self.out.len() >= PIECE_BYTES {
            sink(&self.out);
            self.out.clear();
        }
    }

    /// Writes a value by a function.
    pub(crate) fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.out);
        self.follows = true;
    }

    /// Writes an object as value.
    pub(crate) fn object(&mut self, write: impl FnOnce(&mut Self)) {
        self.nested(b'{', b'}', write);
    }

    /// Writes a list as value.
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.nested(b'[', b']', |json| {
            for item in items {
                json.separate();
                write(json, item);
            }
        });
    }

    /// Writes the key of a member; its value must follow.
    pub(crate) fn key(&mut self, key: &str) -> &mut Self {
        self.separate();
        pintle_value::json::write_string(key, &mut self.out);
        self.out.push(b':');
        self.follows = false;
        self
    }

    /// Writes a text as value.
    pub(crate) fn text(&mut self, text: &str) {
        pintle_value::json::write_string(text, &mut self.out);
        self.follows = true;
    }

    /// Writes JSON text as value: constants, numbers, declared defaults.
    pub(crate) fn raw(&mut self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
        self.follows = true;
    }

    /// Writes a list of texts as value.
    pub(crate) fn texts<T: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = T>) {
        self.list(texts, |json, text| json.text(text.as_ref()));
    }

    fn nested(&mut self, open: u8, close: u8, write: impl FnOnce(&mut Self)) {
        self.out.push(open);
        self.follows = false;
        write(self);
        self.out.push(close);
        self.follows = true;
    }

    fn separate(&mut self) {
        if self.follows {
            self.out.push(b',');
        }
        self.follows = false;
    }
}
