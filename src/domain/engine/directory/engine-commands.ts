/**
 * What an operator asks of an engine, whichever process drives it: here it is done at once, elsewhere within the two seconds in
 * which that process looks. The wish stays with the engine when another process takes it.
 */
import { ServiceError } from '../../errors.ts'
import type { EngineDirectory, ListedEngine } from './engine-directory.ts'
import type { EngineRegistry, EngineWill } from './engine-registry.ts'

interface CommandDeps {
  readonly directory: Pick<EngineDirectory, 'find'>
  /** Whether this process drives the engine. */
  isDriven(engineId: string): boolean
  /** Does what is wanted with an engine that is driven here. */
  obey(engineId: string, will: EngineWill): void
  /** null: this process is alone, and nobody else needs to know. */
  readonly registry: Pick<EngineRegistry, 'setWill'> | null
}

/** Answers with the engine as it is then. Throws `not_found`. */
export type CommandEngine = (engineId: string, will: EngineWill) => Promise<ListedEngine>

export function createCommandEngine({ directory, isDriven, obey, registry }: CommandDeps): CommandEngine {
  return async function commandEngine(engineId, will) {
    const before = directory.find(engineId)
    const isKnown = registry === null || (await registry.setWill(engineId, will))
    if (isDriven(engineId)) {
      obey(engineId, will)
      return directory.find(engineId)
    }
    if (!isKnown) throw new ServiceError('not_found', 'there is no engine with this id')
    return withWill(before, will)
  }
}

/** As it will be once its process has looked. */
function withWill(engine: ListedEngine, will: EngineWill): ListedEngine {
  const isSound = engine.state === 'ready' || engine.state === 'cordoned' || engine.state === 'draining'
  if (!isSound) return engine
  if (will === 'open') return { ...engine, state: 'ready' }
  return { ...engine, state: will === 'draining' && engine.running > 0 ? 'draining' : 'cordoned' }
}
