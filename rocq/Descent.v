(** Bounds on F after a round: losses need not be convex, and no optimum is spoken of.

    With y the model after the round, F(y) <= F(x) + <grad F(x), y - x> + L/2 |y - x|^2, and the right
    side is F(x) - |grad F(x)|^2 / (2 L) + L/2 |y - (x - grad F(x) / L)|^2. So a round's descent is
    what the round does to the distance from x - grad F(x) / L, and one checker serves for both. *)

From Coq Require Import Reals QArith Qreals List Lra Lia Arith Bool.
From fltheory Require Import Space Forms Round OneRound Sound Draw Noise Bound.
Import ListNotations.
Open Scope R_scope.

(** ** The descent lemma follows from interpolation *)

Section Smooth.
Context {V : space}.
Variables (L mu : R).
Hypothesis smooth : 0 < L.
Hypothesis convex : mu < L.

Lemma descent_lemma F (G : V -> V) x y : interpolable L mu F G ->
  F y <= F x + inner (G x) (minus y x) + L / 2 * square (minus y x).
Proof.
  intros I. specialize (I x y).
  assert (S : 0 <= square (minus (minus (G x) (G y)) (scale L (minus x y)))) by apply square_nonneg.
  assert (E : inner (G y) (minus x y) + (square (minus (G x) (G y)) / L + mu * square (minus x y)
      - 2 * (mu / L) * inner (minus (G x) (G y)) (minus x y)) / (2 * (1 - mu / L)) =
    - (inner (G x) (minus y x) + L / 2 * square (minus y x))
    + square (minus (minus (G x) (G y)) (scale L (minus x y))) / (2 * (L - mu))).
  { unfold square.
    repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_scale, ?inner_scale_r).
    rewrite (inner_sym V x (G x)), (inner_sym V x (G y)), (inner_sym V y (G x)),
      (inner_sym V y (G y)), (inner_sym V (G y) (G x)), (inner_sym V y x).
    field. split; lra. }
  assert (P : 0 <= square (minus (minus (G x) (G y)) (scale L (minus x y))) / (2 * (L - mu))).
  { apply Rmult_le_pos; [exact S|]. left. apply Rinv_0_lt_compat. lra. }
  lra.
Qed.

(** Where the round is from F's gradient over L, as if this were the way to an optimum. *)
Definition aim (N : nat) (G : nat -> V -> V) (x : V) : V :=
  minus x (scale (/ L) (mean_gradient N G x)).

Lemma mean_descent N (F : nat -> V -> R) G x y : (0 < N)%nat ->
  (forall i, (i < N)%nat -> interpolable L mu (F i) (G i)) ->
  mean_loss N F y <= (mean_loss N F x - / (2 * L) * square (mean_gradient N G x))
    + L / 2 * square (minus y (aim N G x)).
Proof.
  intros P I.
  assert (E : (mean_loss N F x - / (2 * L) * square (mean_gradient N G x))
      + L / 2 * square (minus y (aim N G x)) =
    average N (fun i => F i x + (inner (G i x) (minus y x) + L / 2 * square (minus y x)))).
  { rewrite !average_add, average_const, <- inner_mean by assumption.
    change (mean N (fun i => G i x)) with (mean_gradient N G x).
    change (average N (fun i => F i x)) with (mean_loss N F x). unfold square, aim.
    set (g := mean_gradient N G x).
    repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_scale, ?inner_scale_r).
    rewrite (inner_sym V x g), (inner_sym V y g), (inner_sym V y x). field. lra. }
  rewrite E. unfold mean_loss, average. apply Rmult_le_compat_l.
  - left. apply Rinv_0_lt_compat. now apply lt_0_INR.
  - apply sum_le. intros i J. assert (H := descent_lemma _ _ x y (I i J)). lra.
Qed.

End Smooth.

(** ** The claim *)

Definition falls (c : claim) {V : space} (n s : nat) (F : nat -> V -> R) (G : nat -> V -> V) (x : V)
    (d sigma rho : R) (draws : law (nat -> bool)) (noises : law V)
    (over : ((nat -> nat -> V) -> R) -> R) (seen : (nat -> nat -> V) -> nat -> nat -> V -> V)
    : Prop :=
  Q2R (q c) * expectation draws (fun who => over (fun xi =>
      mean_loss (n + s) F (clients_round (n + s) (participants c)
        (local_steps c) (Q2R (client_lr c)) (Q2R (server_lr c)) (seen xi) who x)))
  + (1 - Q2R (q c)) * expectation noises (fun noise =>
      mean_loss (n + s) F (server_round (n + s) (Q2R (assist_lr c)) G noise x))
  <= mean_loss (n + s) F x - Q2R (decrease c) * square (mean_gradient (n + s) G x)
     + Q2R (heterogeneity c) * (d * d)
     + Q2R (server_noise c) * (sigma * sigma) + Q2R (noise c) * (rho * rho).

Definition descends (c : claim) : Prop :=
  forall (V : space) (n s : nat) (F : nat -> V -> R) (G : nat -> V -> V) (x : V)
    (d sigma rho : R) (draws : law (nat -> bool)) (noises : law V) (errors : law (nat -> nat -> V)),
  covers c n s ->
  (forall i, (i < n + s)%nat ->
    interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F i) (G i)) ->
  (forall i y, (i < n + s)%nat -> square (minus (G i y) (mean_gradient (n + s) G y)) <= d * d) ->
  probabilities draws ->
  draws_uniformly draws n (participants c) ->
  probabilities noises ->
  unbiased noises sigma ->
  if noisy c
  then noise_of_clients errors n (local_steps c) rho ->
    falls c n s F G x d sigma rho draws noises (expectation errors) (noisy_gradients G)
  else falls c n s F G x d sigma 0 draws noises (fun value => value (fun _ _ => zero))
    (fun _ => exact_gradients G).

(** What a claim on F says of the distance from [aim]. *)
Definition of_distance (c : claim) : claim :=
  let unit := (2 / smoothness c)%Q in
  {| participants := participants c; local_steps := local_steps c;
     most_eligible := most_eligible c; excluded_share := excluded_share c; q := q c;
     client_lr := client_lr c; server_lr := server_lr c; assist_lr := assist_lr c;
     smoothness := smoothness c; convexity := convexity c; everywhere := true; noisy := noisy c;
     descent := true; rate := Qred (1 - 2 * smoothness c * decrease c); gap := 0; decrease := 0;
     heterogeneity := Qred (unit * heterogeneity c); noise := Qred (unit * noise c);
     server_noise := Qred (unit * server_noise c) |}.

Definition proves_descent (c : claim) (w : certificate) : bool := accepted (of_distance c) w.

Section Main.
Variables (c : claim) (w : certificate).
Hypothesis ok : proves_descent c w = true.
Variables (V : space) (n s : nat) (F : nat -> V -> R) (G : nat -> V -> V) (x : V) (d sigma rho : R).
Variables (draws : law (nat -> bool)) (noises : law V) (errors : law (nat -> nat -> V)).
Variable seen : (nat -> nat -> V) -> nat -> nat -> V -> V.
Variable k : nat.
Hypothesis K_is : local_steps c = S k.
Hypothesis errorful : noise_of_clients errors n (local_steps c) rho.
Hypothesis sees : forall p i b y, In p errors -> same (seen (snd p) i b y) (add (G i y) (snd p i b)).
Hypothesis fresh : forall xi xi' i b y, xi i b = xi' i b -> seen xi i b y = seen xi' i b y.
Hypothesis quiet : noisy c = false ->
  rho = 0 /\ forall p, In p errors -> forall i b, snd p i b = zero.
Hypothesis covered : covers c n s.
Hypothesis interpolated : forall i, (i < n + s)%nat ->
  interpolable (Q2R (smoothness c)) (Q2R (convexity c)) (F i) (G i).
Hypothesis alike : forall i y, (i < n + s)%nat ->
  square (minus (G i y) (mean_gradient (n + s) G y)) <= d * d.
Hypothesis draws_proper : probabilities draws.
Hypothesis drawn : draws_uniformly draws n (participants c).
Hypothesis noises_proper : probabilities noises.
Hypothesis server_noisy : unbiased noises sigma.

Let L := Q2R (smoothness c).
Let N := (n + s)%nat.
Let slope := mean_gradient N G x.
Let xs := aim L N G x.

Lemma falls_in_expectation {A} (l : law A) (y : A -> V) : probabilities l -> 0 < L ->
  Q2R (convexity c) < L -> (0 < N)%nat ->
  expectation l (fun o => mean_loss N F (y o)) <=
  (mean_loss N F x - / (2 * L) * square slope)
  + L / 2 * expectation l (fun o => square (minus (y o) xs)).
Proof.
  intros [P C] S M some. apply Rle_trans with (expectation l (fun o =>
    (mean_loss N F x - / (2 * L) * square slope) * 1 + L / 2 * square (minus (y o) xs))).
  - apply expectation_le; [exact P|]. intros o.
    assert (H := mean_descent L _ S M N F G x (y o) some interpolated). fold slope xs in H. lra.
  - rewrite expectation_add, !expectation_scale, C. lra.
Qed.

Theorem fallen : falls c n s F G x d sigma rho draws noises (expectation errors) seen.
Proof.
  destruct (ranges (of_distance c) w ok k K_is) as (M & _ & _ & Q & S & C & _).
  cbn [of_distance participants q smoothness convexity] in M, Q, S, C. fold L in S, C.
  assert (some : (0 < N)%nat) by (destruct covered as (B & _); unfold N; lia).
  assert (B : bounds (of_distance c) n s F G x xs d sigma rho draws noises (expectation errors) seen).
  { apply (bounded _ w ok V n s F G x xs d draws noises sigma rho errors seen (fun _ => zero) k K_is);
      auto; cbn [of_distance descent everywhere smoothness].
    - now rewrite <- K_is.
    - discriminate.
    - intros _ v. unfold xs, aim. fold N L. rewrite !inner_minus. ring.
    - intros v. rewrite inner_mean, inner_zero. unfold average.
      rewrite sum_const. ring.
    - intros i I. split; [|now apply alike]. unfold square. rewrite inner_zero. apply Rle_0_sqr. }
  unfold bounds in B. cbn [of_distance q participants local_steps client_lr server_lr assist_lr rate gap
    heterogeneity noise server_noise] in B. fold N in B.
  assert (T : Q2R 2 = 2) by (unfold Q2R; simpl; lra).
  assert (U : Q2R (2 / smoothness c) = 2 * / L).
  { rewrite Q2R_div, T by (apply Q2R_nonzero; fold L; lra). reflexivity. }
  rewrite !Q2R_Qred, Q2R_minus, !Q2R_mult, U, T, Q2R_0, Q2R_1 in B. fold L in B.
  assert (Z : square (minus x xs) = / L * / L * square slope).
  { unfold xs, aim, square. fold slope.
    repeat (rewrite ?inner_minus, ?inner_minus_r, ?inner_scale, ?inner_scale_r). ring. }
  rewrite Z in B.
  apply (Rmult_le_compat_l (L / 2)) in B; [|lra].
  assert (D1 : expectation draws (fun who => expectation errors (fun xi => mean_loss N F
      (clients_round N (participants c) (local_steps c) (Q2R (client_lr c)) (Q2R (server_lr c))
        (seen xi) who x))) <=
    (mean_loss N F x - / (2 * L) * square slope) + L / 2 * expectation draws (fun who =>
      expectation errors (fun xi => square (minus (clients_round N (participants c)
        (local_steps c) (Q2R (client_lr c)) (Q2R (server_lr c)) (seen xi) who x) xs)))).
  { apply Rle_trans with (expectation draws (fun who =>
      (mean_loss N F x - / (2 * L) * square slope) * 1 + L / 2 * expectation errors (fun xi =>
        square (minus (clients_round N (participants c) (local_steps c) (Q2R (client_lr c))
          (Q2R (server_lr c)) (seen xi) who x) xs)))).
    - apply expectation_le; [apply draws_proper|]. intros who. rewrite Rmult_1_r.
      apply falls_in_expectation; auto. exact (of_probabilities _ _ _ _ errorful).
    - rewrite expectation_add, !expectation_scale, (proj2 draws_proper). lra. }
  assert (D2 := falls_in_expectation noises (fun noise =>
    server_round N (Q2R (assist_lr c)) G noise x) noises_proper S C some).
  apply (Rmult_le_compat_l (Q2R (q c))) in D1; [|lra].
  apply (Rmult_le_compat_l (1 - Q2R (q c))) in D2; [|lra].
  unfold falls. fold N. fold slope in B |- *.
  match type of B with L / 2 * ?l <= _ => set (D := l) in * end.
  apply Rle_trans with ((mean_loss N F x - / (2 * L) * square slope) + L / 2 * D).
  - unfold D. lra.
  - apply Rle_trans with ((mean_loss N F x - / (2 * L) * square slope) +
      L / 2 * ((1 - 2 * L * Q2R (decrease c)) * (/ L * / L * square slope)
        - 0 * (mean_loss N F x - mean_loss N F xs) + 2 * / L * Q2R (heterogeneity c) * (d * d)
        + 2 * / L * Q2R (server_noise c) * (sigma * sigma) + 2 * / L * Q2R (noise c) * (rho * rho)));
      [lra|].
    right. field. lra.
Qed.

End Main.

(** Whatever the checker accepts holds. *)
Theorem one_descent c w : proves_descent c w = true -> descends c.
Proof.
  intros ok V n s F G x d sigma rho draws noises errors C I A P D P' N.
  destruct (local_steps c) as [|k] eqn:K.
  { exfalso. unfold proves_descent, accepted in ok. destruct (shares (of_distance c) w) as [[? ?] [? ?]].
    unfold in_range in ok. cbn [of_distance local_steps] in ok. rewrite K in ok. simpl in ok.
    now rewrite andb_false_r in ok. }
  destruct (noisy c) eqn:E.
  - intros U. rewrite <- K in U.
    apply (fallen c w ok V n s F G x d sigma rho draws noises errors _ k K U); auto.
    + intros p i b y _. apply same_refl.
    + intros xi xi' i b y H. unfold noisy_gradients. now rewrite H.
    + congruence.
  - assert (B : falls c n s F G x d sigma 0 draws noises (expectation [(1, fun _ _ => zero)])
      (fun _ => exact_gradients G)).
    { apply (fallen c w ok V n s F G x d sigma 0 draws noises _ _ k K
        (no_noise V n (local_steps c))); auto.
      + intros p i b y [<-|[]] v. simpl. unfold exact_gradients. rewrite inner_add, inner_zero. ring.
      + intros _. split; [reflexivity|]. now intros p [<-|[]]. }
    unfold falls in *. apply Rle_trans with (2 := B). right. f_equal. f_equal.
    apply expectation_ext. intros p _. simpl. ring.
Qed.

Lemma silence (V : space) : probabilities [(1, zero : V)].
Proof. split; simpl; [|ring]. intros p [<-|[]]. simpl. lra. Qed.

Ltac descent_in_numbers H := unfold descends, falls in H; in_numbers H.
