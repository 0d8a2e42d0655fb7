/** Whether this process can do its work. Asked by probes; whether the process lives at all is answered without asking anybody. */

interface ReadinessDeps {
  /** False while the store is away. */
  readonly storeAnswers: () => Promise<boolean>
  readonly isClockSane: () => boolean
  /** Whether bytes can be stored. */
  readonly hasRoom: () => Promise<boolean>
  /** Parts without which some requests fail and others do not, by the name that probes are told. Never reject. */
  readonly parts: Readonly<Record<string, () => Promise<boolean>>>
}

export interface Readiness {
  /** null when ready, else a reason that is safe to show. */
  notReadyReason(): Promise<string | null>
  /** The names of parts that do not answer, while this process goes on with the rest of its work. */
  degraded(): Promise<readonly string[]>
  /** From now on this process reports that it is not ready, so that load balancers stop sending requests. */
  drain(): void
}

export function createReadiness({ storeAnswers, isClockSane, hasRoom, parts }: ReadinessDeps): Readiness {
  let isDraining = false
  return {
    async notReadyReason() {
      if (isDraining) return 'draining'
      if (!(await storeAnswers())) return 'store'
      if (!isClockSane()) return 'clock'
      return (await hasRoom()) ? null : 'storage'
    },
    async degraded() {
      const states = await Promise.all(
        Object.entries(parts).map(async ([name, answers]) => ((await answers()) ? [] : [name])),
      )
      return states.flat()
    },
    drain() {
      isDraining = true
    },
  }
}
