//! The planted server. It prints its address, serves until its standard input ends, and then writes its accounts.
//!
//! usage: planted --folder DIR [--model NAME] [--ip ADDRESS] [--unix PATH] [--workers N] [--late-read LENGTH]

use std::io::{self, Read, Write};
use std::sync::Arc;

use kernel::server::{self, Options, Shop};

fn main() -> Result<(), String> {
    let mut options = Options { workers: 4, ..Options::default() };
    let (mut words, mut is_inherited) = (std::env::args().skip(1), false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} has no value"));
        match word.as_str() {
            "--folder" => options.folder = value()?.into(),
            "--model" => options.model = value()?.parse()?,
            "--ip" => options.ip = Some(value()?.parse().map_err(|error| format!("{word}: {error}"))?),
            "--unix" => options.unix = Some(value()?.into()),
            "--workers" => options.workers = value()?.parse().map_err(|error| format!("{word}: {error}"))?,
            "--late-read" => {
                options.late_read = value()?.parse().map_err(|error| format!("{word}: {error}"))?
            }
            "--inherited" => is_inherited = true,
            _ => return Err(format!("{word}: not known")),
        }
    }
    if !options.folder.is_dir() {
        return Err("--folder names no folder".to_owned());
    }
    let shop = Arc::new(Shop::new(options));
    let done = if is_inherited { server::serve_inherited(&shop) } else { serve(&shop) };
    done.map_err(|error| error.to_string())
}

fn serve(shop: &Arc<Shop>) -> io::Result<()> {
    let address = server::start(shop)?;
    writeln!(io::stdout(), "listening {address} pid {}", std::process::id())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    shop.wait_for_accounts();
    shop.book.write(&shop.options.folder)
}
