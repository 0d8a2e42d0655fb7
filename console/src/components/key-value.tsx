import type { ComponentChildren } from 'preact'

/** Pairs of a name and what it is; those without a value are left out. */
export function KeyValue({ pairs }: { readonly pairs: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="key-value">
      {pairs
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name} class="key-value-pair">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
