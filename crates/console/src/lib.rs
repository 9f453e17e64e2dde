//! The files of the console: a web page that shows what an API server stores.
//!
//! `page/` has the files as they are written. The build script compresses them, and the program
//! keeps them in its read-only data, so they take no memory until a browser asks for one.
//!
//! Must not know who asks for a file, HTTP, or where files are served.

use std::io::Read;

use flate2::read::GzDecoder;

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// The name, without a directory.
    pub name: &'static str,
    pub media_type: &'static str,
    /// The entity tag with its quotation marks: a hash of the content.
    pub etag: &'static str,
    /// The content, compressed with gzip.
    pub gzip: &'static [u8],
}

/// The files, sorted by name.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file with this name; the empty name is the page itself. A name is looked up in a table, so
/// no name leads to a file of the machine.
pub fn file(name: &str) -> Option<&'static File> {
    let name = if name.is_empty() { "index.html" } else { name };
    FILES.iter().find(|file| file.name == name)
}

impl File {
    /// The content without compression, for clients that do not accept gzip.
    pub fn content(&self) -> std::io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(self.gzip.len() * 4);
        GzDecoder::new(self.gzip).read_to_end(&mut content)?;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The promised limit of the console's size.
    const BYTES_MAX: usize = 300 * 1024;

    #[test]
    fn files_fit_their_budget_uncompressed() {
        let bytes: usize = FILES.iter().map(|file| file.content().expect(file.name).len()).sum();
        assert!(bytes > 0 && bytes < BYTES_MAX, "{bytes} bytes");
    }

    #[test]
    fn only_names_of_files_are_found() {
        assert_eq!(file("").expect("the page").name, "index.html");
        for name in
            ["..", "../Cargo.toml", "./index.html", "index.html/", "INDEX.HTML", "page/index.html"]
        {
            assert!(file(name).is_none(), "{name}");
        }
    }

    /// The content security policy of the console forbids inline scripts and styles
    /// (`script-src 'self'`).
    #[test]
    fn the_page_has_no_inline_script_or_style() {
        let page = file("").expect("the page").content().expect("the page");
        let page = String::from_utf8(page).expect("UTF-8");
        for forbidden in ["<style", " style=", "javascript:", " onclick=", "<script>"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    /// Texts of objects are inserted as text only.
    #[test]
    fn no_script_parses_html() {
        for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
            let script = String::from_utf8(file.content().expect(file.name)).expect("UTF-8");
            for forbidden in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ] {
                assert!(!script.contains(forbidden), "{}: {forbidden}", file.name);
            }
        }
    }
}
