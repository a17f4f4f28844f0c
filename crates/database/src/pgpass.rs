//! The password file of PostgreSQL's clients, `~/.pgpass`: lines of `host:port:database:user:password`, where `*` is
//! any, and a backslash takes the next character as it is.

use super::url::DatabaseUrl;

/// The password that `text`, the content of such a file, has for the server and database of `url` and `user`. The first
/// line that fits counts, as in libpq. A server at a Unix domain socket is found by the socket's directory, or as
/// `localhost`.
pub fn password_in_pgpass(text: &str, url: &DatabaseUrl, user: &str) -> Option<String> {
    let folder = url.socket.as_deref().and_then(|socket| socket.rsplit_once('/')).map(|(folder, _)| folder);
    let port = url.port.to_string();
    // Without a name, the database is that of the user.
    let database = url.database.as_deref().unwrap_or(user);
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields: [String; 5] = fields(line).try_into().ok()?;
        let [host, port_of, database_of, user_of, password] = fields;
        let is_host = host == "*" || host == url.host || Some(host.as_str()) == folder;
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let is_it = is_host && fits(&port_of, &port) && fits(&database_of, database) && fits(&user_of, user);
        is_it.then_some(password)
    })
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut characters) = (vec![String::new()], line.chars());
    while let Some(character) = characters.next() {
        let last = fields.last_mut().expect("there is always a field");
        match character {
            '\\' => last.extend(characters.next()),
            ':' => fields.push(String::new()),
            _ => last.push(character),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text =
            "# a comment\nh:5432:shop:bob:no\nh:5432:shop:ann:a\\:b\\\\c\n*:*:*:ann:any\n/run/pg:*:*:*:s";
        let password = |url: &str, user| password_in_pgpass(text, &DatabaseUrl::parse(url).unwrap(), user);
        assert_eq!(password("postgres://h/shop", "ann").as_deref(), Some(r"a:b\c"));
        assert_eq!(password("postgres://h:1/shop", "ann").as_deref(), Some("any"));
        assert_eq!(password("postgres://h/shop", "eve"), None);
        assert_eq!(password("postgres:///x?host=/run/pg", "eve").as_deref(), Some("s"));
    }
}
