/** The workers of pools, as deployments need them. Whoever runs jobs implements it. */
export interface PoolWorkers {
  /** Resolves once they can take jobs. Harmless for a pool whose workers are there. */
  start(pool: string, workers: number): Promise<void>
  /** Runs under way may finish until the deadline; what is left goes back to the queue. */
  stop(pool: string, options: { readonly deadline: Date }): Promise<void>
  /** Workers that could take a job of this pool now. */
  count(pool: string): number
}
