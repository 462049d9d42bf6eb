//! Values at small numbers that are used again: connections by their mio token.

#[derive(Debug)]
pub(crate) struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// The number under which `value` is kept.
    pub(crate) fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.values[slot] = Some(value);
                slot
            }
            None => {
                self.values.push(Some(value));
                self.values.len() - 1
            }
        }
    }

    /// The number that the next [`Slots::insert`] gives.
    pub(crate) fn vacant(&self) -> usize {
        self.free.last().copied().unwrap_or(self.values.len())
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        self.values.get(slot)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.values.get_mut(slot)?.as_mut()
    }

    pub(crate) fn remove(&mut self, slot: usize) -> Option<T> {
        let value = self.values.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// All numbers given out so far; some may be free.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        0..self.values.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.values.iter_mut().enumerate().filter_map(|(slot, value)| Some((slot, value.as_mut()?)))
    }
}
