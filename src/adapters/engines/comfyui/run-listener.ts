/** What the hub has for a run: it goes to the run's teller, and wakes whoever follows the run. */
import type { RunFollower } from './follow-run.ts'
import type { EngineMessage } from './frames.ts'
import type { RunListener } from './hub.ts'
import type { RunTeller } from './tell-run.ts'

export class TellingListener implements RunListener {
  readonly #teller: RunTeller
  #follower: RunFollower | null = null

  constructor(teller: RunTeller) {
    this.#teller = teller
  }

  wake(follower: RunFollower): void {
    this.#follower = follower
    // The run may have ended before its submit was answered.
    this.#hintAtEnd()
  }

  onMessage(message: EngineMessage): void {
    this.#teller.take(message)
    this.#follower?.heard()
    this.#hintAtEnd()
  }

  onLog(text: string): void {
    this.#teller.log(text)
    this.#follower?.heard()
  }

  onQueueChange(): void {
    this.#follower?.hint()
  }

  #hintAtEnd(): void {
    if (this.#teller.heard.end !== null) this.#follower?.hint()
  }
}
