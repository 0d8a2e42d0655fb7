/** Fewer pieces with the same bytes. Large ones, such as pictures, stay as they are: copies of them would hold the thread. */

// Below this, a copy is cheaper than one more piece for thousands of sockets.
const JOIN_BELOW_BYTES = 262_144

export function joinSmall(frames: readonly Buffer[]): readonly Buffer[] {
  const pieces: Buffer[] = []
  let small: Buffer[] = []
  const closeRow = () => {
    if (small.length > 0) pieces.push(small.length === 1 ? small[0] : Buffer.concat(small))
    small = []
  }
  for (const frame of frames) {
    if (frame.length < JOIN_BELOW_BYTES) small.push(frame)
    else {
      closeRow()
      pieces.push(frame)
    }
  }
  closeRow()
  return pieces
}
