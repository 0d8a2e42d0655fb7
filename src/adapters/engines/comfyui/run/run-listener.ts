/** What the hub has for a run: it goes to the run's teller, and wakes whoever follows the run. */

import type { RunListener } from '../wire/message-dispatcher.ts'
import type { EngineMessage } from '../wire/socket-frames.ts'
import type { RunFollower } from './follow-run.ts'
import type { RunTeller } from './run-emitter.ts'

type Hinted = Pick<RunFollower, 'heard' | 'hint' | 'hintSoon'>

// How Python tells that the thread in which ComfyUI runs prompts has ended. Its HTTP goes on, and nothing runs any more.
const WORKER_DEATH = /^Exception in thread .*\(prompt_worker\)/m
// A line may come in pieces.
const TAIL_LENGTH = 200

export class TellingListener implements RunListener {
  readonly #teller: RunTeller
  #follower: Hinted | null = null
  #isWorkerDead = false
  #printed = '\n'

  constructor(teller: RunTeller) {
    this.#teller = teller
  }

  wake(follower: Hinted): void {
    this.#follower = follower
    // The run may have ended before its submit was answered.
    if (this.#teller.heard.end !== null) follower.hint()
  }

  /** The server told the end of the run, or printed that of the thread that runs it and was not heard of the run since. */
  get isSaidToBeOver(): boolean {
    return this.#isWorkerDead || this.#teller.heard.end !== null
  }

  onMessage(message: EngineMessage): void {
    this.#isWorkerDead = false
    this.#teller.take(message)
    this.#follower?.heard()
    if (isLastWord(message)) this.#follower?.hint()
    else if (this.#teller.heard.end !== null) this.#follower?.hintSoon()
  }

  onLog(text: string): void {
    this.#teller.log(text)
    this.#follower?.heard()
    const printed = this.#printed + text
    if (WORKER_DEATH.test(printed)) this.#isWorkerDead = true
    this.#printed = this.#isWorkerDead ? '' : printed.slice(-TAIL_LENGTH)
  }

  onQueueChange(): void {
    this.#follower?.hint()
  }
}

/** Sent when the history has its entry; success, failure and interruption are told before. */
function isLastWord(message: EngineMessage): boolean {
  return message.kind === 'json' && message.type === 'executing' && message.data.node === null
}
