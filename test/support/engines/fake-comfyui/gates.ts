/** Three points in the life of a prompt at which a test can hold it, look around, turn a switch, and let it go on. */
import type { Phase } from './executor.ts'
import type { Prompt } from './prompt-queue.ts'

interface Gate {
  isClosed: boolean
  waiting: (() => void)[]
  /** Prompts that stand there. */
  standing: Prompt[]
  watchers: ((prompt: Prompt) => void)[]
}

export class Gates {
  readonly #gates: Record<Phase, Gate> = { queued: openGate(), running: openGate(), finishing: openGate() }

  isClosed(phase: Phase): boolean {
    return this.#gates[phase].isClosed
  }

  close(phase: Phase): void {
    this.#gates[phase].isClosed = true
  }

  open(phase: Phase): void {
    const gate = this.#gates[phase]
    gate.isClosed = false
    gate.standing = []
    for (const go of gate.waiting.splice(0)) go()
  }

  openAll(): void {
    for (const phase of ['queued', 'running', 'finishing'] as const) this.open(phase)
  }

  /** Resolves when a prompt stands there. */
  held(phase: Phase): Promise<Prompt> {
    const gate = this.#gates[phase]
    const [standing] = gate.standing
    if (standing !== undefined) return Promise.resolve(standing)
    return new Promise((resolve) => gate.watchers.push(resolve))
  }

  stand(phase: Phase, prompt: Prompt): void {
    const gate = this.#gates[phase]
    gate.standing.push(prompt)
    for (const tell of gate.watchers.splice(0)) tell(prompt)
  }

  /** Stays as long as the gate is closed and nobody interrupts. */
  async pass(phase: Phase, prompt: Prompt, interrupted: AbortSignal): Promise<void> {
    const gate = this.#gates[phase]
    if (!gate.isClosed || interrupted.aborted) return
    this.stand(phase, prompt)
    await new Promise<void>((resolve) => {
      gate.waiting.push(resolve)
      interrupted.addEventListener('abort', () => resolve(), { once: true })
    })
  }
}

function openGate(): Gate {
  return { isClosed: false, waiting: [], standing: [], watchers: [] }
}
