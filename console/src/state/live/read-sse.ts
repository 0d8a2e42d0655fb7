/** The text of an event stream, cut into its frames, whatever pieces it arrives in. */
export interface SseFrame {
  readonly event: string
  readonly data: string
}

/** Gives the frames that each piece completes. A frame that grows beyond the bound is dropped: nothing of ours is that long. */
const MAX_FRAME = 4 * 1024 * 1024

export function createSseReader(): (piece: string) => readonly SseFrame[] {
  let rest = ''
  let event = 'message'
  let data: string[] = []
  return (piece) => {
    const frames: SseFrame[] = []
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_FRAME) rest = ''
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
      if (line === '') {
        if (data.length > 0) frames.push({ event, data: data.join('\n') })
        event = 'message'
        data = []
      } else if (line.startsWith('event:')) event = line.slice(6).trim()
      else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5))
    }
    return frames
  }
}
