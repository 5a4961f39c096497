/* Member of a session that uses OpenPGM: `peer send|receive NETWORK PORT COUNT`. With port 0, packets
 * are sent without UDP. Message i consists of i as four bytes, most significant byte first, and of
 * (i mod 1300) bytes that equal the lowest byte of i. */
#include <pgm/pgm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pgm_sock_t *sock;

static void set(int option, const void *value, socklen_t length) {
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, value, length)) {
        fprintf(stderr, "option %d is refused\n", option);
        exit(2);
    }
}

static void set_int(int option, int value) { set(option, &value, sizeof value); }

static size_t message(uint8_t *buffer, uint32_t i) {
    size_t length = i % 1300;
    buffer[0] = i >> 24, buffer[1] = i >> 16, buffer[2] = i >> 8, buffer[3] = i;
    memset(buffer + 4, i & 0xff, length);
    return 4 + length;
}

/* Does pending work of the socket. `expected` messages were received before; returns their new number. */
static uint32_t serve(uint32_t expected) {
    static uint8_t buffer[65536], right[2048];
    size_t length = 0;
    int status = pgm_recv(sock, buffer, sizeof buffer, 0, &length, NULL);
    if (status == PGM_IO_STATUS_RESET) {
        fprintf(stderr, "lost after %u messages\n", expected);
        exit(3);
    }
    if (status != PGM_IO_STATUS_NORMAL)
        return expected;
    if (length != message(right, expected) || memcmp(buffer, right, length)) {
        fprintf(stderr, "message %u is wrong\n", expected);
        exit(4);
    }
    return expected + 1;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    int sends = !strcmp(argv[1], "send"), port = atoi(argv[3]);
    uint32_t count = atoi(argv[4]);
    struct pgm_addrinfo_t *network = NULL;
    pgm_error_t *error = NULL;
    if (!pgm_init(&error) || !pgm_getaddrinfo(argv[2], NULL, &network, &error) ||
        !pgm_socket(&sock, network->ai_send_addrs[0].gsr_group.ss_family, SOCK_SEQPACKET,
                    port ? IPPROTO_UDP : IPPROTO_PGM, &error)) {
        fprintf(stderr, "%s\n", error ? error->message : "no socket");
        return 2;
    }
    if (port) {
        set_int(PGM_UDP_ENCAP_UCAST_PORT, port);
        set_int(PGM_UDP_ENCAP_MCAST_PORT, port);
    }
    set_int(PGM_IP_ROUTER_ALERT, 0);
    set_int(PGM_MTU, 1500);
    if (sends) {
        int heartbeats[] = {pgm_msecs(10), pgm_msecs(20), pgm_msecs(40), pgm_msecs(80),
                            pgm_msecs(100), pgm_msecs(200), pgm_msecs(500), pgm_secs(1)};
        set_int(PGM_SEND_ONLY, 1);
        set_int(PGM_TXW_SQNS, 20000);
        set_int(PGM_ODATA_MAX_RTE, 16 * 1000 * 1000);
        set_int(PGM_AMBIENT_SPM, pgm_secs(1));
        set(PGM_HEARTBEAT_SPM, heartbeats, sizeof heartbeats);
    } else {
        set_int(PGM_RECV_ONLY, 1);
        set_int(PGM_PASSIVE, 0);
        set_int(PGM_RXW_SQNS, 20000);
        set_int(PGM_PEER_EXPIRY, pgm_secs(300));
        set_int(PGM_SPMR_EXPIRY, pgm_msecs(250));
        set_int(PGM_NAK_BO_IVL, pgm_msecs(2));
        set_int(PGM_NAK_RPT_IVL, pgm_msecs(20));
        set_int(PGM_NAK_RDATA_IVL, pgm_msecs(20));
        set_int(PGM_NAK_DATA_RETRIES, 100);
        set_int(PGM_NAK_NCF_RETRIES, 100);
    }
    struct pgm_sockaddr_t address;
    memset(&address, 0, sizeof address);
    address.sa_port = 7500;
    pgm_gsi_create_from_string(&address.sa_addr.gsi, "peer", -1);
    struct pgm_interface_req_t interface;
    memset(&interface, 0, sizeof interface);
    interface.ir_interface = network->ai_recv_addrs[0].gsr_interface;
    if (!pgm_bind3(sock, &address, sizeof address, &interface, sizeof interface, &interface,
                   sizeof interface, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return 2;
    }
    set(PGM_JOIN_GROUP, &network->ai_recv_addrs[0], sizeof(struct group_req));
    set(PGM_SEND_GROUP, &network->ai_send_addrs[0], sizeof(struct group_req));
    set_int(PGM_MULTICAST_LOOP, 0);
    set_int(PGM_MULTICAST_HOPS, 16);
    set_int(PGM_NOBLOCK, 1);
    if (!pgm_connect(sock, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return 2;
    }
    puts("ready");
    fflush(stdout);
    if (sends) {
        /* pgm_send crashes if the buffer is not aligned like OpenPGM's own buffers. */
        static uint8_t buffer[2048] __attribute__((aligned(64)));
        usleep(300000);
        for (uint32_t i = 0; i < count; i++) {
            size_t length = message(buffer, i);
            while (pgm_send(sock, buffer, length, NULL) != PGM_IO_STATUS_NORMAL)
                serve(0);
            for (int k = 0; k < 4; k++)
                serve(0);
        }
        /* Serves repairs until the parent process ends this process. */
        for (;;) {
            serve(0);
            usleep(50);
        }
    }
    uint32_t received = 0;
    while (received < count) {
        uint32_t before = received;
        received = serve(received);
        if (received == before)
            usleep(50);
    }
    puts("complete");
    return 0;
}
