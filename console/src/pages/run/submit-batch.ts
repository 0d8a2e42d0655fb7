/** Submits the jobs of a form one after the other, so that they wait in the order of their lists. What is refused stops it. */
import { signal } from '@preact/signals'
import { ApiError } from '../../api/client.ts'
import type { InputChange } from '../../form/change-workflow.ts'

export interface BatchState {
  readonly total: number
  /** Newest first. */
  readonly ids: readonly string[]
  /** Refused and not made yet. */
  readonly left: readonly (readonly InputChange[])[]
  readonly error: ApiError | null
  readonly isBusy: boolean
}

const IDLE: BatchState = { total: 0, ids: [], left: [], error: null, isBusy: false }

type Submit = (changes: readonly InputChange[]) => Promise<string>

export function createBatch() {
  const state = signal<BatchState>(IDLE)
  let last: Submit | null = null
  async function submit(jobs: readonly (readonly InputChange[])[], one: Submit): Promise<void> {
    if (state.value.isBusy) return
    last = one
    state.value = { ...state.value, total: jobs.length, left: jobs, error: null, isBusy: true }
    for (const [index, changes] of jobs.entries()) {
      try {
        const id = await one(changes)
        state.value = { ...state.value, ids: [id, ...state.value.ids], left: jobs.slice(index + 1) }
      } catch (error) {
        state.value = { ...state.value, isBusy: false, error: error instanceof ApiError ? error : null }
        if (!(error instanceof ApiError)) throw error
        return
      }
    }
    state.value = { ...state.value, isBusy: false }
  }
  return {
    state,
    submit,
    /** Those that are left, as they were when the others were submitted. */
    resume: () => (last === null ? undefined : submit(state.value.left, last)),
  }
}
