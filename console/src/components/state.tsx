/** How something stands: a state, not there yet, empty, refused. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ApiError } from '../api/client.ts'
import type { JobStatus } from '../api/summary.ts'
import { zoneName } from '../state/preferences.ts'
import type { Resource } from '../state/resource.ts'
import { formatTime } from '../text/format.ts'
import { Icon, type IconName } from './icon.tsx'
import { CopyButton, Words } from './text.tsx'

/** The colour is named by the state of a job that has it. */
export type StateLook = readonly [icon: IconName, word: string, colour: JobStatus]

const LOOKS: Readonly<Record<JobStatus, StateLook>> = {
  queued: ['clock', 'Waiting', 'queued'],
  running: ['play', 'Running', 'running'],
  canceling: ['stop', 'Canceling', 'canceling'],
  succeeded: ['check', 'Succeeded', 'succeeded'],
  failed: ['cross', 'Failed', 'failed'],
  canceled: ['stop', 'Canceled', 'canceled'],
  expired: ['clock', 'Expired', 'expired'],
}

/** A state is a drawing, a word and a colour, never a colour alone. */
export function statusWord(status: JobStatus): string {
  return LOOKS[status][1]
}

export function StatusPill({ status }: { readonly status: JobStatus }) {
  return <StatePill look={LOOKS[status]} />
}

/** The state of anything: a job, a node, an engine. */
export function StatePill({ look: [icon, word, colour] }: { readonly look: StateLook }) {
  return (
    <span class="status" data-status={colour}>
      <Icon name={icon} />
      <span>{word}</span>
    </span>
  )
}

/** Rows of the real height where rows will be. They appear after a moment only: most answers are faster. */
export function Skeleton({ rows, kind = 'row' }: { readonly rows: number; readonly kind?: 'row' | 'tile' | 'card' }) {
  return (
    <div class={`skeleton skeleton-${kind}s`} aria-hidden="true">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class={`skeleton-${kind}`} />
      ))}
    </div>
  )
}

interface EmptyStateProps {
  readonly title: string
  readonly children?: ComponentChildren
}

/** What will be here, and the one thing that fills it. */
export function EmptyState({ title, children }: EmptyStateProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

interface ErrorBoxProps {
  readonly error: ApiError
  readonly onRetry?: () => void
}

/** A refusal or an outage, in the service's own words, with what can be done about it. */
export function ErrorBox({ error, onRetry }: ErrorBoxProps) {
  const seconds = useCountdown(error)
  return (
    <div class="error-box" role="alert">
      <p class="error-box-message">
        <Words text={error.message} />
      </p>
      <p class="dim">
        {error.status === null ? 'no answer; asked again by itself' : `${error.status} ${error.code}`}
        {seconds > 0 && ` · again in ${seconds} s`}
        {error.requestId !== null && (
          <>
            {' · request '}
            <code>{error.requestId}</code> <CopyButton text={error.requestId} label="Copy request id" />
          </>
        )}
      </p>
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry} disabled={seconds > 0}>
          Try again
        </button>
      )}
    </div>
  )
}

/** What is left of `Retry-After`. */
function useCountdown(error: ApiError): number {
  const [left, setLeft] = useState(error.retryAfterSeconds ?? 0)
  useEffect(() => {
    setLeft(error.retryAfterSeconds ?? 0)
    const timer = setInterval(() => setLeft((before) => Math.max(0, before - 1)), 1000)
    return () => clearInterval(timer)
  }, [error])
  return left
}

interface LoadedProps<Value> {
  readonly resource: Resource<Value>
  readonly skeleton: ComponentChildren
  readonly children: (value: Value) => ComponentChildren
}

/**
 * What a question came to: nothing yet, an answer, a refusal. Data that was there stays when a later question fails, with a line that
 * says from when it is.
 */
export function Loaded<Value>({ resource, skeleton, children }: LoadedProps<Value>) {
  const { data, error, at, reload } = resource
  if (data.value === null) {
    if (error.value === null) return <div aria-busy="true">{skeleton}</div>
    return <ErrorBox error={error.value} onRetry={reload} />
  }
  return (
    <>
      {error.value !== null && (
        <p class="stale-line" role="status">
          {error.value.status === null ? 'The service cannot be reached' : error.value.message}: shown as of{' '}
          {formatTime(at.value ?? 0, zoneName())}.
        </p>
      )}
      {children(data.value)}
    </>
  )
}
