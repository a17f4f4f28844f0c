//! Slots for connections that are reused, with keys that never refer to a later occupant.

/// Names one entry. The key of a removed entry finds nothing, even after its slot is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    pub(crate) fn from_bits(bits: u64) -> Key {
        Key(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    fn new(generation: u32, place: u32) -> Key {
        Key(u64::from(generation) << 32 | u64::from(place))
    }

    fn place(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// The key that [`insert`](Slab::insert) will return next.
    pub(crate) fn next_key(&self) -> Key {
        match self.free.last() {
            Some(&place) => Key::new(self.places[place as usize].generation, place),
            None => Key::new(0, u32::try_from(self.places.len()).expect("fewer connections than 2^32")),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        let key = self.next_key();
        match self.free.pop() {
            Some(_) => self.places[key.place()].value = Some(value),
            None => self.places.push(Place { generation: 0, value: Some(value) }),
        }
        key
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.place())?;
        if place.generation == key.generation() { place.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.place())?;
        if place.generation != key.generation() {
            return None;
        }
        let value = place.value.take()?;
        // 31 bits: the upper keys are reserved for the listener and the waker.
        place.generation = (place.generation + 1) & 0x7fff_ffff;
        self.free.push(u32::try_from(key.place()).expect("a place is 32 bits wide"));
        Some(value)
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        let taken = self.places.iter().enumerate().filter(|(_, place)| place.value.is_some());
        taken.map(|(index, place)| Key::new(place.generation, index as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a late event of a closed connection is delivered to its successor.
    #[test]
    fn a_key_does_not_find_the_successor() {
        let mut slab = Slab::new();
        let first = slab.insert("a");
        assert_eq!(slab.remove(first), Some("a"));
        assert_eq!(slab.remove(first), None);
        let second = slab.insert("b");
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "b"));
        assert_eq!((slab.len(), slab.keys()), (1, vec![second]));
    }
}
