/** How far a run is, as the service says it. Never goes back while the same run is shown. */
import { useRef } from 'preact/hooks'

interface ProgressProps {
  readonly value: number | null
  readonly label: string
  readonly run: string
}

export function Progress({ value, label, run }: ProgressProps) {
  const most = useRef({ run, value: 0 })
  if (most.current.run !== run) most.current = { run, value: 0 }
  const shown = Math.max(most.current.value, Math.min(1, value ?? 0))
  most.current.value = shown
  const percent = Math.floor(shown * 100)
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={value === null ? undefined : percent}
    >
      <div class="progress-bar" style={{ transform: `scaleX(${shown})` }} />
    </div>
  )
}
