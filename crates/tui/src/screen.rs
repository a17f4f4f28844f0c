//! Takes over the terminal for the live view, and restores it: at the end, on an error, a panic, or a signal.
//!
//! Keys arrive one by one and without echo, but Ctrl-C remains a signal, so that it works even if the view hangs. The
//! previous state is restored exactly once, by the first caller.

use std::io::{self, Stderr, Write};
use std::sync::{Mutex, MutexGuard, Once, TryLockError};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use units::Nanos;

/// The previous mode of the terminal; present while the view has the terminal.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Whether this process is in the foreground: a background job receives no keys, and the kernel would stop it for
/// reading.
pub fn is_in_front() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|front| front == rustix::process::getpgrp())
}

/// The screen that the view draws on.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Takes over the terminal.
    ///
    /// # Errors
    ///
    /// The errors of the terminal, whose state is restored then.
    pub fn enter() -> io::Result<Screen> {
        static ON_PANIC: Once = Once::new();
        ON_PANIC.call_once(|| {
            let reported = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                reported(panic);
            }));
        });
        let before = tcgetattr(io::stderr())?;
        let mut ours = before.clone();
        // Ctrl-S would block our output, and this process with it.
        ours.input_modes.remove(InputModes::IXON);
        ours.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        // A run that is suspended measures nothing, and would leave the screen half drawn.
        for code in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
            ours.special_codes[code] = DISABLED;
        }
        *held() = Some(before);
        let entered = tcsetattr(io::stderr(), OptionalActions::Now, &ours)
            .map_err(io::Error::from)
            .and_then(|()| execute!(io::stderr(), EnterAlternateScreen, Hide))
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
        match entered {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }

    /// Writes what was drawn to the terminal, unless the terminal has been restored in the meantime.
    ///
    /// # Errors
    ///
    /// The errors of the terminal.
    pub fn show(&mut self) -> io::Result<()> {
        let before = held();
        if before.is_some() {
            self.terminal.flush()?;
            self.terminal.swap_buffers();
            io::stderr().flush()?;
        }
        Ok(())
    }

    /// Draws in memory, for [`Screen::show`] to put on the terminal.
    ///
    /// # Errors
    ///
    /// When the size of the terminal cannot be reported.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if held().is_some() {
            self.terminal.autoresize()?;
            draw(&mut self.terminal.get_frame());
        }
        Ok(())
    }
}

/// The value of a control character that is disabled (`_POSIX_VDISABLE`).
const DISABLED: u8 = 0;

/// Restores the terminal, if the view has it.
pub fn leave() {
    let Some(mut before) = held_soon() else {
        // The drawing thread has hung or panicked with the lock held, so the saved modes cannot be read.
        let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
        return;
    };
    if let Some(before) = before.take() {
        let _ = execute!(io::stderr(), Show, LeaveAlternateScreen);
        let _ = tcsetattr(io::stderr(), OptionalActions::Now, &before);
        let _ = io::stderr().flush();
    }
}

fn held() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Like [`held`], but does not wait for ever: a panic may happen while the lock is held.
fn held_soon() -> Option<MutexGuard<'static, Option<Termios>>> {
    for _ in 0..20 {
        match BEFORE.try_lock() {
            Ok(before) => return Some(before),
            Err(TryLockError::Poisoned(before)) => return Some(before.into_inner()),
            Err(TryLockError::WouldBlock) => clock::sleep_until(clock::now() + Nanos::from_millis(5)),
        }
    }
    None
}
