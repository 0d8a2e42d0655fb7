/** What a fake storage can be asked for, and how it can be broken. */

export type S3Operation =
  | 'put'
  | 'get'
  | 'head'
  | 'delete'
  | 'list'
  | 'begin_upload'
  | 'put_part'
  | 'complete_upload'
  | 'abort_upload'
  | 'list_uploads'
  | 'list_parts'

/**
 * `cut` breaks the connection (a download half-way); `lose_answer` does the work first; `damage` flips a byte on its way; `sip` takes
 * the body in slowly, with so many pauses; `keep_alive` says 200 and sends blanks until it knows how the work ends.
 */
export type S3Fault =
  | { readonly kind: 'status'; readonly status: number; readonly code: string }
  | { readonly kind: 'cut' }
  | { readonly kind: 'lose_answer' }
  | { readonly kind: 'damage' }
  | { readonly kind: 'stall'; readonly until: Promise<unknown> }
  | { readonly kind: 'sip'; readonly pauses: number; readonly pauseMs: number }
  | { readonly kind: 'keep_alive'; readonly blanks: number; readonly everyMs: number; readonly code: string | null }

export const UNAVAILABLE: S3Fault = { kind: 'status', status: 503, code: 'SlowDown' }
