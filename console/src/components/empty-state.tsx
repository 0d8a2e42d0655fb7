/** What will be here, and the one thing that fills it. */
import type { ComponentChildren } from 'preact'

interface EmptyStateProps {
  readonly title: string
  readonly children?: ComponentChildren
}

export function EmptyState({ title, children }: EmptyStateProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}
