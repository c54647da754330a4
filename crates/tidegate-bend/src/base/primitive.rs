//! The functions of Base that the runtime provides.

/// A function that is not written in Bend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Primitive {
    /// `Nat.add`
    NatAdd,
    /// `Nat.sub`
    NatSub,
    /// `Nat.mul`
    NatMul,
    /// `Nat.div`
    NatDiv,
    /// `Nat.mod`
    NatMod,
    /// `Nat.cmp`
    NatCmp,
    /// `Nat.show`
    NatShow,
    /// `Nat.read`
    NatRead,
    /// `U32.add`
    U32Add,
    /// `U32.sub`
    U32Sub,
    /// `U32.mul`
    U32Mul,
    /// `U32.div`
    U32Div,
    /// `U32.mod`
    U32Mod,
    /// `U32.and`
    U32And,
    /// `U32.or`
    U32Or,
    /// `U32.xor`
    U32Xor,
    /// `U32.not`
    U32Not,
    /// `U32.shln`
    U32Shln,
    /// `U32.shrn`
    U32Shrn,
    /// `U32.cmp`
    U32Cmp,
    /// `U32.to_nat`
    U32ToNat,
    /// `U32.from_nat`
    U32FromNat,
    /// `U32.to_f32`
    U32ToF32,
    /// `U32.show`
    U32Show,
    /// `U32.read`
    U32Read,
    /// `F32.add`
    F32Add,
    /// `F32.sub`
    F32Sub,
    /// `F32.mul`
    F32Mul,
    /// `F32.div`
    F32Div,
    /// `F32.mod`
    F32Mod,
    /// `F32.pow`
    F32Pow,
    /// `F32.atan2`
    F32Atan2,
    /// `F32.neg`
    F32Neg,
    /// `F32.abs`
    F32Abs,
    /// `F32.sqrt`
    F32Sqrt,
    /// `F32.exp`
    F32Exp,
    /// `F32.log`
    F32Log,
    /// `F32.log2`
    F32Log2,
    /// `F32.log10`
    F32Log10,
    /// `F32.sin`
    F32Sin,
    /// `F32.cos`
    F32Cos,
    /// `F32.tan`
    F32Tan,
    /// `F32.asin`
    F32Asin,
    /// `F32.acos`
    F32Acos,
    /// `F32.atan`
    F32Atan,
    /// `F32.sinh`
    F32Sinh,
    /// `F32.cosh`
    F32Cosh,
    /// `F32.tanh`
    F32Tanh,
    /// `F32.floor`
    F32Floor,
    /// `F32.ceil`
    F32Ceil,
    /// `F32.trunc`
    F32Trunc,
    /// `F32.round`
    F32Round,
    /// `F32.is_lt`
    F32IsLt,
    /// `F32.is_le`
    F32IsLe,
    /// `F32.is_gt`
    F32IsGt,
    /// `F32.is_ge`
    F32IsGe,
    /// `F32.is_eq`
    F32IsEq,
    /// `F32.is_ne`
    F32IsNe,
    /// `F32.show`
    F32Show,
    /// `F32.read`
    F32Read,
    /// `F32.to_u32`
    F32ToU32,
    /// `F32.from_nat`
    F32FromNat,
    /// `F32.to_nat`
    F32ToNat,
    /// `F32.bits`
    F32Bits,
    /// `String.append`
    StringAppend,
    /// `String.length`
    StringLength,
    /// `String.order`
    StringOrder,
    /// `String.starts_with`
    StringStartsWith,
    /// `String.ends_with`
    StringEndsWith,
    /// `String.contains`
    StringContains,
    /// `Array.new`
    ArrayNew,
    /// `Array.get`
    ArrayGet,
    /// `Array.set`
    ArraySet,
    /// `Array.swap`
    ArraySwap,
    /// `Array.size`
    ArraySize,
    /// `Array.clone`
    ArrayClone,
    /// `Array.to_list`
    ArrayToList,
    /// `Map.put`
    MapPut,
    /// `Map.find`
    MapFind,
    /// `Map.seek`
    MapSeek,
    /// `IO.pure`
    IoPure,
    /// `IO.bind`
    IoBind,
    /// `IO.print`
    IoPrint,
    /// `IO.write`
    IoWrite,
    /// `IO.print_err`
    IoPrintErr,
    /// `IO.get_env`
    IoGetEnv,
    /// `IO.args`
    IoArgs,
    /// `IO.random_u32`
    IoRandomU32,
    /// `IO.thread_count`
    IoThreadCount,
    /// `IO.sleep`
    IoSleep,
    /// `IO.now`
    IoNow,
    /// `IO.spawn`
    IoSpawn,
    /// `IO.die`
    IoDie,
    /// `Chan.new`
    ChanNew,
    /// `Chan.send`
    ChanSend,
    /// `Chan.recv`
    ChanRecv,
    /// `Chan.try_send`
    ChanTrySend,
    /// `Chan.try_recv`
    ChanTryRecv,
    /// `Chan.close`
    ChanClose,
    /// `File.open`
    FileOpen,
    /// `File.read`
    FileRead,
    /// `File.read_bytes`
    FileReadBytes,
    /// `File.read_at`
    FileReadAt,
    /// `File.size`
    FileSize,
    /// `File.write`
    FileWrite,
    /// `File.write_bytes`
    FileWriteBytes,
    /// `File.close`
    FileClose,
    /// `TCP.listen`
    TcpListen,
    /// `TCP.accept`
    TcpAccept,
    /// `TCP.connect`
    TcpConnect,
    /// `TCP.send`
    TcpSend,
    /// `TCP.recv`
    TcpRecv,
    /// `UDP.bind`
    UdpBind,
    /// `UDP.send_to`
    UdpSendTo,
    /// `UDP.recv_from`
    UdpRecvFrom,
    /// `Socket.close`
    SocketClose,
    /// `Listener.close`
    ListenerClose,
}

/// The name of each in Base.
const NAMES: [(&str, Primitive); 117] = [
    ("Nat.add", Primitive::NatAdd),
    ("Nat.sub", Primitive::NatSub),
    ("Nat.mul", Primitive::NatMul),
    ("Nat.div", Primitive::NatDiv),
    ("Nat.mod", Primitive::NatMod),
    ("Nat.cmp", Primitive::NatCmp),
    ("Nat.show", Primitive::NatShow),
    ("Nat.read", Primitive::NatRead),
    ("U32.add", Primitive::U32Add),
    ("U32.sub", Primitive::U32Sub),
    ("U32.mul", Primitive::U32Mul),
    ("U32.div", Primitive::U32Div),
    ("U32.mod", Primitive::U32Mod),
    ("U32.and", Primitive::U32And),
    ("U32.or", Primitive::U32Or),
    ("U32.xor", Primitive::U32Xor),
    ("U32.not", Primitive::U32Not),
    ("U32.shln", Primitive::U32Shln),
    ("U32.shrn", Primitive::U32Shrn),
    ("U32.cmp", Primitive::U32Cmp),
    ("U32.to_nat", Primitive::U32ToNat),
    ("U32.from_nat", Primitive::U32FromNat),
    ("U32.to_f32", Primitive::U32ToF32),
    ("U32.show", Primitive::U32Show),
    ("U32.read", Primitive::U32Read),
    ("F32.add", Primitive::F32Add),
    ("F32.sub", Primitive::F32Sub),
    ("F32.mul", Primitive::F32Mul),
    ("F32.div", Primitive::F32Div),
    ("F32.mod", Primitive::F32Mod),
    ("F32.pow", Primitive::F32Pow),
    ("F32.atan2", Primitive::F32Atan2),
    ("F32.neg", Primitive::F32Neg),
    ("F32.abs", Primitive::F32Abs),
    ("F32.sqrt", Primitive::F32Sqrt),
    ("F32.exp", Primitive::F32Exp),
    ("F32.log", Primitive::F32Log),
    ("F32.log2", Primitive::F32Log2),
    ("F32.log10", Primitive::F32Log10),
    ("F32.sin", Primitive::F32Sin),
    ("F32.cos", Primitive::F32Cos),
    ("F32.tan", Primitive::F32Tan),
    ("F32.asin", Primitive::F32Asin),
    ("F32.acos", Primitive::F32Acos),
    ("F32.atan", Primitive::F32Atan),
    ("F32.sinh", Primitive::F32Sinh),
    ("F32.cosh", Primitive::F32Cosh),
    ("F32.tanh", Primitive::F32Tanh),
    ("F32.floor", Primitive::F32Floor),
    ("F32.ceil", Primitive::F32Ceil),
    ("F32.trunc", Primitive::F32Trunc),
    ("F32.round", Primitive::F32Round),
    ("F32.is_lt", Primitive::F32IsLt),
    ("F32.is_le", Primitive::F32IsLe),
    ("F32.is_gt", Primitive::F32IsGt),
    ("F32.is_ge", Primitive::F32IsGe),
    ("F32.is_eq", Primitive::F32IsEq),
    ("F32.is_ne", Primitive::F32IsNe),
    ("F32.show", Primitive::F32Show),
    ("F32.read", Primitive::F32Read),
    ("F32.to_u32", Primitive::F32ToU32),
    ("F32.from_nat", Primitive::F32FromNat),
    ("F32.to_nat", Primitive::F32ToNat),
    ("F32.bits", Primitive::F32Bits),
    ("String.append", Primitive::StringAppend),
    ("String.length", Primitive::StringLength),
    ("String.order", Primitive::StringOrder),
    ("String.starts_with", Primitive::StringStartsWith),
    ("String.ends_with", Primitive::StringEndsWith),
    ("String.contains", Primitive::StringContains),
    ("Array.new", Primitive::ArrayNew),
    ("Array.get", Primitive::ArrayGet),
    ("Array.set", Primitive::ArraySet),
    ("Array.swap", Primitive::ArraySwap),
    ("Array.size", Primitive::ArraySize),
    ("Array.clone", Primitive::ArrayClone),
    ("Array.to_list", Primitive::ArrayToList),
    ("Map.put", Primitive::MapPut),
    ("Map.find", Primitive::MapFind),
    ("Map.seek", Primitive::MapSeek),
    ("IO.pure", Primitive::IoPure),
    ("IO.bind", Primitive::IoBind),
    ("IO.print", Primitive::IoPrint),
    ("IO.write", Primitive::IoWrite),
    ("IO.print_err", Primitive::IoPrintErr),
    ("IO.get_env", Primitive::IoGetEnv),
    ("IO.args", Primitive::IoArgs),
    ("IO.random_u32", Primitive::IoRandomU32),
    ("IO.thread_count", Primitive::IoThreadCount),
    ("IO.sleep", Primitive::IoSleep),
    ("IO.now", Primitive::IoNow),
    ("IO.spawn", Primitive::IoSpawn),
    ("IO.die", Primitive::IoDie),
    ("Chan.new", Primitive::ChanNew),
    ("Chan.send", Primitive::ChanSend),
    ("Chan.recv", Primitive::ChanRecv),
    ("Chan.try_send", Primitive::ChanTrySend),
    ("Chan.try_recv", Primitive::ChanTryRecv),
    ("Chan.close", Primitive::ChanClose),
    ("File.open", Primitive::FileOpen),
    ("File.read", Primitive::FileRead),
    ("File.read_bytes", Primitive::FileReadBytes),
    ("File.read_at", Primitive::FileReadAt),
    ("File.size", Primitive::FileSize),
    ("File.write", Primitive::FileWrite),
    ("File.write_bytes", Primitive::FileWriteBytes),
    ("File.close", Primitive::FileClose),
    ("TCP.listen", Primitive::TcpListen),
    ("TCP.accept", Primitive::TcpAccept),
    ("TCP.connect", Primitive::TcpConnect),
    ("TCP.send", Primitive::TcpSend),
    ("TCP.recv", Primitive::TcpRecv),
    ("UDP.bind", Primitive::UdpBind),
    ("UDP.send_to", Primitive::UdpSendTo),
    ("UDP.recv_from", Primitive::UdpRecvFrom),
    ("Socket.close", Primitive::SocketClose),
    ("Listener.close", Primitive::ListenerClose),
];

impl Primitive {
    /// The primitive that Base declares under that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Primitive> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, primitive)| *primitive)
    }

    /// Its name in Base.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| *name)
    }

    /// Does it answer an action?
    #[must_use]
    pub fn is_effect(self) -> bool {
        self as u32 >= Primitive::IoPure as u32
    }

    /// Does it need a network socket?
    #[must_use]
    pub fn needs_sockets(self) -> bool {
        self as u32 >= Primitive::TcpListen as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Primitive, NAMES};

    #[test]
    fn effects_and_sockets_are_the_last() {
        for (name, primitive) in NAMES {
            let is_effect = ["IO.", "Chan.", "File.", "TCP.", "UDP.", "Socket.", "Listener."];
            assert_eq!(primitive.is_effect(), is_effect.iter().any(|of| name.starts_with(of)), "{name}");
            let is_socket = ["TCP.", "UDP.", "Socket.", "Listener."];
            assert_eq!(primitive.needs_sockets(), is_socket.iter().any(|of| name.starts_with(of)), "{name}");
            assert_eq!(Primitive::named(name), Some(primitive));
        }
    }
}
