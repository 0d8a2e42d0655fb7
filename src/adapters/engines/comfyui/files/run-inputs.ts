/** The inputs of one run on its server: uploaded before each submit, and uploaded in another way when the server does not find them. */
import type { NodeCatalog } from '../../../../../engine/graph/node-catalog.ts'
import type { EngineRun } from '../../../../domain/engine/engine-port.ts'
import type { Refusal } from '../run/graph-refusal.ts'
import { namesToUpload } from '../run/rewrite-graph.ts'
import type { Stage } from './stage-inputs.ts'

interface RunInputsDeps {
  readonly stage: Stage
  readonly catalog: NodeCatalog
}

export class RunInputs {
  readonly #stage: Stage
  readonly #wanted: EngineRun['inputs']
  #names: ReadonlyMap<string, string> = new Map()
  #isUploadedAgain = false

  constructor({ stage, catalog }: RunInputsDeps, { graph, inputs }: Pick<EngineRun, 'graph' | 'inputs'>) {
    const names = namesToUpload(graph, catalog, new Set(inputs.keys()))
    this.#stage = stage
    this.#wanted = new Map([...inputs].filter(([name]) => names.has(name)))
  }

  /** Their names on the server, by the names in the graph. */
  get names(): ReadonlyMap<string, string> {
    return this.#names
  }

  get isEmpty(): boolean {
    return this.#wanted.size === 0
  }

  async upload(signal: AbortSignal): Promise<void> {
    const staged = await this.#stage.upload(this.#wanted, signal)
    this.release()
    this.#names = staged
  }

  release(): void {
    this.#stage.release(this.#names)
  }

  /** True when the refusal is about files that we uploaded, and they can be uploaded in another way. */
  mayUploadAgain({ isAboutFiles, unknownChoices }: Refusal): boolean {
    const staged = new Set(this.#names.values())
    if (this.#isUploadedAgain || staged.size === 0) return false
    this.#isUploadedAgain = true
    const isNoChoice = unknownChoices.some((name) => staged.has(name))
    if (isNoChoice) this.#stage.flatten()
    else if (isAboutFiles) this.#stage.forget()
    return isNoChoice || isAboutFiles
  }
}
