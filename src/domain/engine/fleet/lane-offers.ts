/**
 * Lanes of the queue, and what engines offer to take from them. A lane holds the waiting jobs that need the same of an engine;
 * an offer says which lanes one engine can serve, and how well its loaded weights fit. The store only compares keys and ranks.
 */

/** The lane of jobs that were accepted before anybody knew what they need: every engine may try them. */
export const ANY_LANE = '*'
/** Jobs of a pool in which every engine runs everything stand in no lane. */
export const NO_LANE = ''

/**
 * 0: everything it needs is loaded here; 1: some of it is; 2: it is loaded nowhere; 3: another engine has it loaded.
 * Lower ranks are taken first, within the bound that `maxOvertakes` sets.
 */
export type LaneRank = 0 | 1 | 2 | 3

export interface LaneOffer {
  readonly lane: string
  readonly rank: LaneRank
}

export interface EngineOffer {
  readonly engineId: string
  /** null: this engine takes whatever waits in the pool, in plain order. */
  readonly lanes: readonly LaneOffer[] | null
}
