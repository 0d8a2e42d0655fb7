/** What the hub has for a run: it goes to the run's teller, and wakes whoever follows the run. */
import type { RunFollower } from './follow-run.ts'
import type { EngineMessage } from './frames.ts'
import type { RunListener } from './hub.ts'
import type { RunTeller } from './tell-run.ts'

type Hinted = Pick<RunFollower, 'heard' | 'hint' | 'hintSoon'>

export class TellingListener implements RunListener {
  readonly #teller: RunTeller
  #follower: Hinted | null = null

  constructor(teller: RunTeller) {
    this.#teller = teller
  }

  wake(follower: Hinted): void {
    this.#follower = follower
    // The run may have ended before its submit was answered.
    if (this.#teller.heard.end !== null) follower.hint()
  }

  onMessage(message: EngineMessage): void {
    this.#teller.take(message)
    this.#follower?.heard()
    if (isLastWord(message)) this.#follower?.hint()
    else if (this.#teller.heard.end !== null) this.#follower?.hintSoon()
  }

  onLog(text: string): void {
    this.#teller.log(text)
    this.#follower?.heard()
  }

  onQueueChange(): void {
    this.#follower?.hint()
  }
}

/** Sent when the history has its entry; success, failure and interruption are told before. */
function isLastWord(message: EngineMessage): boolean {
  return message.kind === 'json' && message.type === 'executing' && message.data.node === null
}
