//! What clients send.

/// A message of a client that has logged in, or is about to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Statements to be run at once.
    Query(String),
    /// A statement to be kept under a name.
    Parse { name: String, sql: String, types: Vec<u32> },
    /// Values for a statement's parameters.
    Bind(Bind),
    /// Asks for the columns of a statement or a portal.
    Describe(Named),
    /// Asks for rows of a portal; 0 is all.
    Execute { portal: String, rows_max: i32 },
    /// Forgets a statement or a portal.
    Close(Named),
    /// The end of what belongs together.
    Sync,
    /// Asks for answers now.
    Flush,
    /// Goodbye.
    Terminate,
    /// Bytes of COPY.
    CopyData(Vec<u8>),
    /// The end of COPY.
    CopyDone,
    /// COPY is given up.
    CopyFail(String),
    /// A password, or a step of SASL.
    Password(Vec<u8>),
    /// A call of a function, which clients stopped making long ago.
    FunctionCall,
    /// A letter that is no message.
    Unknown(u8),
    /// A simple query that cannot be read, and why: it is answered as any other.
    UnreadQuery(&'static str),
}

/// Values for a statement's parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub portal: String,
    pub statement: String,
    /// 0 is text and 1 is binary: none, one for all, or one each.
    pub formats: Vec<i16>,
    /// `None` is NULL.
    pub values: Vec<Option<Vec<u8>>>,
    /// Formats of the columns of the answer, likewise.
    pub answer_formats: Vec<i16>,
}

/// A statement or a portal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Statement(String),
    Portal(String),
}

/// What is said of bytes that are no text.
pub(crate) const NOT_UTF8: &str = "invalid byte sequence for encoding \"UTF8\"";

/// Reads a message from its letter and what follows its length.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(letter: u8, body: &[u8]) -> Result<Message, &'static str> {
    let mut input = Input { rest: body };
    let message = match letter {
        b'Q' => match input.text() {
            Ok(text) if input.rest.is_empty() => Message::Query(text),
            Ok(_) => return Ok(Message::UnreadQuery("invalid byte sequence for encoding \"UTF8\": 0x00")),
            Err(why) => return Ok(Message::UnreadQuery(why)),
        },
        b'P' => {
            let (name, sql) = (input.text()?, input.text()?);
            let n_types = input.count(4)?;
            let types = (0..n_types).map(|_| Ok(input.int32()? as u32)).collect::<Result<_, &str>>()?;
            Message::Parse { name, sql, types }
        }
        b'B' => Message::Bind(input.bind()?),
        b'D' => Message::Describe(input.named()?),
        b'E' => Message::Execute { portal: input.text()?, rows_max: input.int32()? },
        b'C' => Message::Close(input.named()?),
        b'S' => Message::Sync,
        b'H' => Message::Flush,
        b'X' => Message::Terminate,
        b'd' => return Ok(Message::CopyData(body.to_vec())),
        b'c' => Message::CopyDone,
        b'f' => Message::CopyFail(input.text()?),
        b'p' => return Ok(Message::Password(body.to_vec())),
        b'F' => return Ok(Message::FunctionCall),
        other => return Ok(Message::Unknown(other)),
    };
    match input.rest.is_empty() {
        true => Ok(message),
        false => Err("bytes after the end of a message"),
    }
}

/// What is left of a message.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn bytes(&mut self, n_bytes: usize) -> Result<&'a [u8], &'static str> {
        let (bytes, rest) = self.rest.split_at_checked(n_bytes).ok_or("a message is cut off")?;
        self.rest = rest;
        Ok(bytes)
    }

    fn int16(&mut self) -> Result<i16, &'static str> {
        Ok(i16::from_be_bytes(self.bytes(2)?.try_into().expect("two bytes")))
    }

    fn int32(&mut self) -> Result<i32, &'static str> {
        Ok(i32::from_be_bytes(self.bytes(4)?.try_into().expect("four bytes")))
    }

    /// A number of things of at least so many bytes each, all of which must be there.
    fn count(&mut self, bytes_each: usize) -> Result<usize, &'static str> {
        let count = self.int16()? as u16 as usize;
        match count * bytes_each <= self.rest.len() {
            true => Ok(count),
            false => Err("a message is cut off"),
        }
    }

    fn text(&mut self) -> Result<String, &'static str> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or("a text has no end")?;
        let text = std::str::from_utf8(&self.rest[..end]).map_err(|_| NOT_UTF8)?;
        self.rest = &self.rest[end + 1..];
        Ok(text.to_owned())
    }

    fn formats(&mut self) -> Result<Vec<i16>, &'static str> {
        let count = self.count(2)?;
        let format = |input: &mut Input<'a>| match input.int16()? {
            format @ (0 | 1) => Ok(format),
            _ => Err("a format that is neither text nor binary"),
        };
        (0..count).map(|_| format(self)).collect()
    }

    fn bind(&mut self) -> Result<Bind, &'static str> {
        let (portal, statement) = (self.text()?, self.text()?);
        let formats = self.formats()?;
        let n_values = self.count(4)?;
        let values = (0..n_values).map(|_| self.value()).collect::<Result<_, _>>()?;
        Ok(Bind { portal, statement, formats, values, answer_formats: self.formats()? })
    }

    fn value(&mut self) -> Result<Option<Vec<u8>>, &'static str> {
        match self.int32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| "a length that cannot be")?;
                Ok(Some(self.bytes(length)?.to_vec()))
            }
        }
    }

    fn named(&mut self) -> Result<Named, &'static str> {
        let kind = self.bytes(1)?[0];
        let name = self.text()?;
        match kind {
            b'S' => Ok(Named::Statement(name)),
            b'P' => Ok(Named::Portal(name)),
            _ => Err("a name of neither a statement nor a portal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        assert_eq!(parse(b'Q', b"select 1\0"), Ok(Message::Query("select 1".into())));
        assert_eq!(
            parse(b'P', b"s\0select $1\0\0\x01\0\0\0\x17"),
            Ok(Message::Parse { name: "s".into(), sql: "select $1".into(), types: vec![23] })
        );
        let bind = b"\0s\0\0\x01\0\x01\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\0";
        assert_eq!(
            parse(b'B', bind),
            Ok(Message::Bind(Bind {
                portal: String::new(),
                statement: "s".into(),
                formats: vec![1],
                values: vec![Some(b"a".to_vec()), None],
                answer_formats: vec![],
            }))
        );
        assert_eq!(parse(b'D', b"Sx\0"), Ok(Message::Describe(Named::Statement("x".into()))));
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_refused() {
        for query in [&b"select 1"[..], b"a\0b", b"\xff\0"] {
            assert!(matches!(parse(b'Q', query), Ok(Message::UnreadQuery(_))), "{query:?}");
        }
        assert!(parse(b'P', b"s\0q\0\x7f\xff").is_err());
        assert!(parse(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff").is_err());
        assert!(parse(b'E', b"p\0\0").is_err());
        assert!(parse(b'C', b"Zx\0").is_err());
        for end in 0..20 {
            let bind = b"\0s\0\0\x01\0\x01\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\0";
            assert!(parse(b'B', &bind[..end]).is_err(), "{end}");
        }
    }
}
