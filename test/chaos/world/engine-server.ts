/** A fake ComfyUI server as a process, and the link through which the service reaches it. */

import { FakeComfyChild } from '../../support/engines/fake-comfyui/child.ts'
import type { ExecutionNews } from '../../support/engines/fake-comfyui/fake-options.ts'
import { type FaultProxy, openFaultProxy } from '../../support/network/fault-proxy.ts'

export class EngineServer implements AsyncDisposable {
  readonly name: string
  readonly link: FaultProxy
  readonly #child: FakeComfyChild

  private constructor(name: string, link: FaultProxy, child: FakeComfyChild) {
    this.name = name
    this.link = link
    this.#child = child
  }

  static async open(name: string, logPath: string): Promise<EngineServer> {
    return new EngineServer(name, await openFaultProxy(), new FakeComfyChild({ nodeMs: 10, logPath }))
  }

  /** As the service knows it. */
  get url(): string {
    return `http://127.0.0.1:${this.link.port}`
  }

  async start(): Promise<void> {
    await this.#child.start()
    this.link.aim(Number(new URL(this.#child.url).port))
  }

  async kill(): Promise<void> {
    this.link.aim(null)
    await this.#child.kill()
  }

  freeze(): void {
    this.#child.pause()
  }

  thaw(): void {
    this.#child.resume()
  }

  /** What it began and ended in all its lives. */
  news(): ExecutionNews[] {
    return this.#child.news()
  }

  /** Prompts that it still has. */
  async remaining(): Promise<number> {
    const answer = await fetch(`${this.#child.url}/prompt`)
    const { exec_info } = (await answer.json()) as { exec_info: { queue_remaining: number } }
    return exec_info.queue_remaining
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await this.link[Symbol.asyncDispose]()
  }
}
