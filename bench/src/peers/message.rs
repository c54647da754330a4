//! What is sent.

use std::hint::black_box;

/// What may be sent. thingbuf keeps its slots filled and lends them out, and so wants values that can be made, cloned and
/// shared; nobody else asks for that.
pub(crate) trait Message: Default + Clone + Send + Sync + Unpin + 'static {}
impl<T: Default + Clone + Send + Sync + Unpin + 'static> Message for T {}

/// A value of `N` bytes, at least 8, that carries a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload<const N: usize>([u8; N]);

/// A value that carries a number, by which it is known again.
pub(crate) trait Numbered: Message + PartialEq {
    fn numbered(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Numbered for u64 {
    #[inline]
    fn numbered(number: u64) -> u64 {
        number
    }

    #[inline]
    fn number(&self) -> u64 {
        *self
    }
}

impl<const N: usize> Numbered for Payload<N> {
    #[inline]
    fn numbered(number: u64) -> Self {
        let mut payload = Payload::default();
        payload.0[..8].copy_from_slice(&number.to_le_bytes());
        payload
    }

    #[inline]
    fn number(&self) -> u64 {
        // All of it counts as read: else the copy of a receive that is inlined is left out, which only a program that
        // looks at a few bytes would see.
        let all = black_box(&self.0);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&all[..8]);
        u64::from_le_bytes(bytes)
    }
}

/// Arrays have no `Default` of their own beyond 32.
impl<const N: usize> Default for Payload<N> {
    #[inline]
    fn default() -> Self {
        Payload([0; N])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_its_size_and_keeps_its_number() {
        assert_eq!(size_of::<Payload<8>>(), 8);
        assert_eq!(size_of::<Payload<1_024>>(), 1_024);
        assert_eq!(Payload::<8>::numbered(u64::MAX - 1).number(), u64::MAX - 1);
        assert_eq!(Payload::<256>::numbered(7).number(), 7);
        assert_eq!(Payload::<64>::default().number(), 0);
    }
}
