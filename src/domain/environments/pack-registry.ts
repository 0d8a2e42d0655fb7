/** Where packs are published under an id, each version once. Implemented by what the operator names as registry. */
import { createSemaphore } from '../../../lib/waiting/semaphore.ts'

export interface PublishedPack {
  readonly id: string
  /** Three numbers. */
  readonly version: string
  /** `pending`: not examined yet. `withdrawn`: it must not be installed any more. */
  readonly state: 'active' | 'pending' | 'withdrawn'
}

export interface PackRegistry {
  /** `version`: null is the newest. null: there is none. Throws an Error that says what is wrong with the registry. */
  find(id: string, version: string | null): Promise<PublishedPack | null>
  /** The newest version of the pack that brings this class. Throws as `find` does. */
  findByClass(classType: string): Promise<PublishedPack | null>
}

/** Many questions of one request. Whatever cannot be asked is answered with null. */
export interface PackLookup extends PackRegistry {
  /** Why some were not asked; null: all were. */
  readonly problem: () => string | null
}

const AT_ONCE = 8
const MAX_QUESTIONS = 600
// Whoever asks gives up after 30 s.
const MAX_MS = 20_000

/** Each question once, a few at a time; after the first that fails, and when time is up, no more. */
export function createPackLookup(registry: PackRegistry | null): PackLookup {
  const room = createSemaphore(AT_ONCE)
  const asked = new Map<string, Promise<PublishedPack | null>>()
  const late = AbortSignal.timeout(MAX_MS)
  let problem: string | null = null

  function ask(key: string, question: () => Promise<PublishedPack | null>): Promise<PublishedPack | null> {
    const known = asked.get(key)
    if (known !== undefined || registry === null) return known ?? Promise.resolve(null)
    if (asked.size >= MAX_QUESTIONS)
      problem ??= `the registry was asked for ${MAX_QUESTIONS} packs; the rest was left out`
    const answer = room.run(async () => {
      if (late.aborted) problem ??= 'the registry of packs took too long; the rest was left out'
      if (problem !== null) return null
      try {
        const found = await question()
        return found?.state === 'withdrawn' ? null : found
      } catch (error) {
        problem ??= (error as Error).message
        return null
      }
    })
    asked.set(key, answer)
    return answer
  }

  return {
    find: (id, version) => ask(`${id}@${version}`, async () => registry?.find(id, version) ?? null),
    findByClass: (classType) => ask(`class ${classType}`, async () => registry?.findByClass(classType) ?? null),
    problem: () => problem,
  }
}
