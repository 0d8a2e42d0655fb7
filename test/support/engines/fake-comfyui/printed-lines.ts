/** What a fake server has printed: the newest pieces, as ComfyUI keeps them and sends them to clients that subscribed. */
import type { FakeFaults } from './faults.ts'

const MAX_PRINTED = 300

export class PrintedLines {
  readonly subscribers = new Set<string>()
  readonly #faults: Pick<FakeFaults, 'zoneMinutes' | 'quietOutput'>
  readonly #send: (clientId: string, text: string) => void
  #printed: readonly object[] = []
  #micros = 0

  constructor(faults: Pick<FakeFaults, 'zoneMinutes' | 'quietOutput'>, send: (clientId: string, text: string) => void) {
    this.#faults = faults
    this.#send = send
  }

  newest(): readonly object[] {
    return this.#printed
  }

  print(line: string): void {
    const { zoneMinutes, quietOutput } = this.#faults
    // As `print` does: the text, and then the end of the line.
    const entries = [line, '\n'].map((m) => {
      this.#micros = Math.max(this.#micros + 1, Date.now() * 1000)
      const local = new Date(Math.floor(this.#micros / 1000) + zoneMinutes * 60_000)
      const micros = String(this.#micros % 1000).padStart(3, '0')
      return { t: local.toISOString().replace('Z', micros), m }
    })
    this.#printed = [...this.#printed, ...entries].slice(-MAX_PRINTED)
    if (quietOutput) return
    for (const clientId of this.subscribers)
      this.#send(clientId, JSON.stringify({ type: 'logs', data: { entries, size: null } }))
  }
}
