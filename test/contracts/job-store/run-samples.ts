/** A run in the middle, and the sweep that finds its lease lapsed. */
import type { Progress } from '../../../src/domain/jobs/job.ts'
import { at, LOST } from '../store-under-test.ts'

export const PROGRESS: Progress = {
  value: 0.25,
  nodesDone: 1,
  nodesTotal: 4,
  currentNode: '3',
  currentNodeClass: 'KSampler',
  step: 5,
  steps: 20,
  message: 'KSampler 5/20',
}

export const REAP = { now: at(30_001), maxAttempts: 3, error: LOST }
