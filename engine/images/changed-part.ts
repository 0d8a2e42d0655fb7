/** What of a picture differs from the one before it, so that an animation need not repeat the rest. */

export interface Part {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

interface PixelLayout {
  readonly width: number
  readonly height: number
  readonly channels: number
}

/**
 * The smallest part with every pixel that differs, moved out to an even left and top, which is where a frame of a WebP can begin.
 * null: the pictures are equal.
 */
export function changedPart(before: Uint8Array, after: Uint8Array, layout: PixelLayout): Part | null {
  const { height, channels } = layout
  const rowBytes = layout.width * channels
  const isSame = (y: number) =>
    Buffer.compare(
      before.subarray(y * rowBytes, (y + 1) * rowBytes),
      after.subarray(y * rowBytes, (y + 1) * rowBytes),
    ) === 0
  let top = 0
  while (top < height && isSame(top)) top++
  if (top === height) return null
  let bottom = height - 1
  while (isSame(bottom)) bottom--
  let first = rowBytes
  let last = 0
  for (let y = top; y <= bottom; y++) {
    const row = y * rowBytes
    let at = 0
    while (at < first && before[row + at] === after[row + at]) at++
    first = at
    at = rowBytes - 1
    while (at > last && before[row + at] === after[row + at]) at--
    last = at
  }
  const left = toEven(Math.floor(first / channels))
  const right = Math.floor(last / channels)
  return { left, top: toEven(top), width: right - left + 1, height: bottom - toEven(top) + 1 }
}

const toEven = (value: number) => value - (value % 2)

/** The pixels of a part, row by row. */
export function cutPart(pixels: Uint8Array, part: Part, { width, channels }: PixelLayout): Uint8Array {
  const rowBytes = part.width * channels
  const cut = new Uint8Array(rowBytes * part.height)
  for (let y = 0; y < part.height; y++) {
    const from = ((part.top + y) * width + part.left) * channels
    cut.set(pixels.subarray(from, from + rowBytes), y * rowBytes)
  }
  return cut
}

/** The pixels of a part with an alpha channel: those that did not change are transparent. null: all have changed. */
export function cutChanges(
  before: Uint8Array,
  after: Uint8Array,
  part: Part,
  { width }: PixelLayout,
): Uint8Array | null {
  const cut = new Uint8Array(part.width * part.height * 4)
  let hasUnchanged = false
  for (let y = 0, to = 0; y < part.height; y++) {
    let from = ((part.top + y) * width + part.left) * 3
    for (let x = 0; x < part.width; x++, from += 3, to += 4) {
      const [red, green, blue] = [after[from], after[from + 1], after[from + 2]]
      if (red === before[from] && green === before[from + 1] && blue === before[from + 2]) {
        hasUnchanged = true
        continue
      }
      cut[to] = red
      cut[to + 1] = green
      cut[to + 2] = blue
      cut[to + 3] = 255
    }
  }
  return hasUnchanged ? cut : null
}
