//! Elements of HTML and SVG that cannot come out unbalanced or unescaped.
//!
//! Every text and every attribute goes through one escape, and elements nest as values do, so data
//! from a file can say nothing but itself. What comes out is read by parsers of HTML and of XML
//! alike. A template would be checked by nobody but its author.

use std::fmt::{self, Display, Write};

#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Element(Element),
    Text(String),
}

/// Those of HTML that have no end.
const VOID: [&str; 2] = ["meta", "wbr"];

pub(super) fn element(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), children: Vec::new() }
}

impl Element {
    pub(super) fn with(mut self, key: &'static str, value: impl Display) -> Self {
        self.attributes.push((key, value.to_string()));
        self
    }

    pub(super) fn class(self, name: impl Display) -> Self {
        self.with("class", name)
    }

    pub(super) fn text(mut self, text: impl Display) -> Self {
        self.children.push(Node::Text(text.to_string()));
        self
    }

    pub(super) fn child(mut self, child: Element) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    pub(super) fn children(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (key, value) in &self.attributes {
            write!(f, " {key}=\"{}\"", Escaped(value))?;
        }
        if VOID.contains(&self.name) {
            return f.write_str("/>");
        }
        f.write_char('>')?;
        for child in &self.children {
            match child {
                Node::Element(element) => element.fmt(f)?,
                Node::Text(text) => Escaped(text).fmt(f)?,
            }
        }
        write!(f, "</{}>", self.name)?;
        // Lines, for those who read the source; none within a line of text.
        if matches!(self.name, "tr" | "p" | "g" | "li" | "rect" | "svg" | "h2" | "section") {
            f.write_char('\n')?;
        }
        Ok(())
    }
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(letter)?,
                // No document of either kind may hold these.
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                _ if letter.is_control() => f.write_char('\u{fffd}')?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_text_holds_it_stays_a_text() {
        let nasty = "</p><script>alert(\"1\" & '2')\u{0}\u{1b}</script>";
        let text = element("p").with("title", nasty).text(nasty).to_string();
        assert_eq!(text.matches('<').count(), 2, "{text}");
        assert_eq!(text.matches('"').count(), 2, "{text}");
        assert!(text.contains("&amp;") && !text.contains('\u{0}') && !text.contains('\u{1b}'));
    }

    #[test]
    fn empty_elements_end_unless_they_cannot() {
        assert_eq!(element("td").to_string(), "<td></td>");
        assert_eq!(
            element("meta").with("charset", "utf-8").to_string(),
            "<meta charset=\"utf-8\"/>"
        );
    }
}
