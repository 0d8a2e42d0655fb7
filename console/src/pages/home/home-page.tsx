export function HomePage() {
  return (
    <section class="page">
      <h1>Home</h1>
    </section>
  )
}
